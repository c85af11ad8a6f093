"""Open settings of a likelihood are chosen by the training NLL, whatever the inference."""

import numpy as np
import pytest

from gpal import GPClassifier
from gpal.likelihoods.dirichlet import CANDIDATES, Dirichlet
from gpal.likelihoods.softmax import Softmax


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


class OpenTemperature(Softmax):
    """softmax(f/T), T chosen among three; of no paper, and with sites that are no constants."""

    name = "open_temperature"
    temperature, asked = 1.0, ()

    def _conditional_probabilities(self, F):
        return super()._conditional_probabilities(F / self.temperature)

    def select_settings(self, training_nll):
        if self.asked:
            return False
        for self.temperature in (0.3, 1.0, 3.0):
            self.asked = (*self.asked, training_nll())
        self.temperature = (0.3, 1.0, 3.0)[int(np.argmin(self.asked))]
        return True


@pytest.mark.parametrize("inference", ["sites", "svgp"])
def test_any_likelihood_may_choose_by_it(inference):
    """Its training NLL is that of the probabilities at the same hyper-parameters."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = (X[:, 0] + 0.8 * rng.normal(size=60) > 0).astype(int)
    model = GPClassifier(
        OpenTemperature(2, num_points=256),
        input_noise="none",
        inference=inference,
        max_rounds=0,
        n_inducing=60,
        inference_options={"steps": 30} if inference == "svgp" else None,
    ).fit(X, y)
    likelihood = model.model_.likelihood
    assert len(set(likelihood.asked)) == 3
    assert likelihood.temperature == (0.3, 1.0, 3.0)[int(np.argmin(likelihood.asked))]
    if inference == "sites":
        nll = -np.log(model.predict_proba(X)[np.arange(60), y]).mean()
        np.testing.assert_allclose(nll, min(likelihood.asked), rtol=1e-3)
