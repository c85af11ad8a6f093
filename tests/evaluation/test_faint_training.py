"""Training on fainter copies: nothing changes where there are none to make."""

import numpy as np
import pytest
from sklearn.base import clone

from gpal import GPClassifier, load_catalog
from gpal.catalog import Fainter
from gpal.errors import InputError
from gpal.evaluation import FaintTraining, any_classifier

SMALL = {"n_inducing": 20, "kernel": "rbf", "input_noise": "first_order", "population": "flat"}


@pytest.fixture(scope="module")
def catalog():
    return load_catalog("4fgl-dr4", features="open")[::12]


@pytest.fixture(scope="module")
def known(catalog):
    return catalog.labelled()


@pytest.mark.slow
def test_where_no_target_is_fainter_it_is_the_classifier_itself(catalog, known):
    """Every copy is its original then, and twice half a source is one."""
    fainter = Fainter.of(catalog)
    brighter = Fainter(fainter.features, fainter.significance, fainter.targets + 1e6)
    settings = {
        **SMALL,
        "n_inducing": None,
        "inducing_points": known.X[known.measurements.measured.all(axis=1)][:20],
    }
    plain = GPClassifier(**settings).fit(known.measurements, known.y)
    twice = FaintTraining(GPClassifier(**settings), brighter).fit(known.measurements, known.y)
    P = plain.predict_proba(known.measurements)
    np.testing.assert_allclose(twice.predict_proba(known.measurements), P, atol=2e-4)


@pytest.fixture(scope="module")
def fitted(catalog, known):
    model = FaintTraining(GPClassifier(**SMALL), Fainter.of(catalog))
    return clone(model).fit(known.measurements, known.y)


def test_it_predicts_as_what_it_has_taught(fitted, known, tmp_path):
    sources = known.measurements[:20]
    P, deviation = any_classifier.predict_proba_with_std(fitted, sources)
    np.testing.assert_array_equal(P, fitted.classifier_.predict_proba(sources))
    np.testing.assert_array_equal(deviation, any_classifier.predict_proba_std(fitted, sources))
    assert (fitted.predict(sources) == fitted.classes_[P.argmax(axis=1)]).all()
    drawn = any_classifier.sample_proba(fitted, sources, 8, seed=1)
    assert drawn.shape == (8, *P.shape)
    fitted.classifier_.save(tmp_path / "model.npz")
    again = GPClassifier.load(tmp_path / "model.npz")
    np.testing.assert_allclose(again.predict_proba(sources), P, atol=1e-12)


def test_the_copies_are_learned_from(fitted, catalog, known):
    """Probabilities of faint targets are others than those of a model that saw no copies."""
    plain = GPClassifier(**SMALL).fit(known.measurements, known.y)
    faint = catalog.unlabelled().measurements
    assert not np.allclose(fitted.predict_proba(faint), plain.predict_proba(faint), atol=0.02)


def test_arrays_are_refused(catalog, known):
    with pytest.raises(InputError, match="give Measurements"):
        FaintTraining(GPClassifier(**SMALL), Fainter.of(catalog)).fit(known.X, known.y)
