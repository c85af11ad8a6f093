"""What every inference refuses."""

import numpy as np
import pytest

from gpal import GPClassifier
from gpal.errors import InputError
from gpal.inference.base import INFERENCES


@pytest.mark.parametrize("inference", INFERENCES)
def test_an_option_that_an_inference_has_not_is_refused(inference):
    rule = INFERENCES[inference].rule
    of_rule = {None: "softmax", "cavi": "logistic_softmax", "class_sampled": "gumbel_softmax"}
    likelihood = of_rule.get(rule, "bernoulli_logit")
    X = np.random.default_rng(0).normal(size=(20, 2))
    classifier = GPClassifier(
        likelihood,
        input_noise="none",
        inference=inference,
        n_inducing=5,
        inference_options={"swweeps": 3},
    )
    with pytest.raises(InputError, match=f"'{inference}' has no option 'swweeps'; it has: ."):
        classifier.fit(X, np.arange(20) % 2)
