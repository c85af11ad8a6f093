"""α_ε is the candidate with the least training NLL."""

import numpy as np

from gpal import GPClassifier
from gpal.inference.concentration import CANDIDATES
from gpal.likelihoods.dirichlet import Dirichlet


def test_the_choice_is_the_best_of_the_fixed_ones_and_an_object_keeps_its_own():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 2))
    y = (X[:, 0] + 0.8 * rng.normal(size=90) > 0).astype(int)

    def training_nll(model):
        return -np.log(model.predict_proba(X)[np.arange(90), y]).mean()

    options = {"max_rounds": 0}
    fixed = {
        a: training_nll(GPClassifier(Dirichlet(2, a), **options).fit(X, y)) for a in CANDIDATES
    }
    chosen = GPClassifier("dirichlet", **options).fit(X, y)
    assert chosen.settings_["likelihood"]["alpha_eps"] == min(fixed, key=fixed.get)
    np.testing.assert_allclose(training_nll(chosen), min(fixed.values()), rtol=1e-6)
    assert len({round(nll, 3) for nll in fixed.values()}) > 3
