"""A model of colours, ratios and softened fluxes, applied to another table."""

from __future__ import annotations

import numpy as np
import pytest
from astropy.table import Table

from gpal import GPClassifier
from gpal.catalog import load_catalog
from gpal.errors import InputError
from gpal.jobs.prediction import predict

MAPPING = {
    "class": "kind",
    "sentinels": [-99],
    "features": {
        "r": "r",
        "g-r": {"difference": ["g", "r"]},
        "log g/r": {"ratio": ["g", "r"], "transform": "log10", "above": 0},
        "flux": {
            **{"column": "F", "error": "F_var", "error_kind": "variance"},
            **{"transform": "asinh", "softening": 0.25},
        },
    },
}


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    kind = np.repeat(["star", "QSO", "UNKNOWN"], [30, 30, 20])
    table = Table({"kind": kind})
    for name, unit in (("g", "mag"), ("r", "mag"), ("F", "mJy")):
        table[name] = rng.normal(18 + (kind == "star"), 1.0)
        table[f"e_{name}"] = rng.uniform(0.05, 0.3, size=80)
        table[name].unit = table[f"e_{name}"].unit = unit
    table["F"] = table["F"] - 18 * table["F"].unit
    table["F_var"] = table["e_F"] ** 2
    table["F_var"].unit = "mJy2"
    del table["e_F"]
    table["r"][[3, 70]] = -99
    return table


@pytest.fixture
def model(table, tmp_path):
    table.write(tmp_path / "known.ecsv")
    catalog = load_catalog(tmp_path / "known.ecsv", mapping=MAPPING)
    assert catalog.classes == ("qso", "star") and catalog.measurements.covariance is not None
    known = catalog.labelled()
    classifier = GPClassifier(n_inducing=5, max_rounds=0).fit(known.measurements, known.y)
    classifier.save(tmp_path / "model.npz", {"catalog": catalog.provenance})
    expected = classifier.predict_proba(catalog.measurements)
    return GPClassifier.load(tmp_path / "model.npz"), expected


def test_the_same_probabilities(model, table):
    classifier, expected = model
    del table["kind"]
    made = predict(classifier, table[table.colnames[::-1]])
    P = np.column_stack([made["p_qso"], made["p_star"]])
    np.testing.assert_allclose(P, expected, rtol=1e-9)


def test_a_softened_flux_in_another_unit_is_converted(model, table):
    classifier, expected = model
    table["F"], table["F_var"] = table["F"].to("Jy"), table["F_var"].to("Jy2")
    made = predict(classifier, table)
    np.testing.assert_allclose(made["p_star"], expected[:, 1], rtol=1e-9)


def test_another_softening_is_refused(model, tmp_path):
    classifier, _ = model
    other = {**MAPPING["features"], "flux": {**MAPPING["features"]["flux"], "softening": 0.5}}
    mapping = {**MAPPING, "features": other}
    catalog = load_catalog(tmp_path / "known.ecsv", mapping=mapping)
    with pytest.raises(
        InputError, match=r"'flux' has the softening 0.5 here and 0.25 in the model"
    ):
        predict(classifier, catalog)


def test_a_difference_the_other_way_round_is_refused(model, tmp_path):
    other = {**MAPPING["features"], "g-r": {"difference": ["r", "g"]}}
    catalog = load_catalog(tmp_path / "known.ecsv", mapping={**MAPPING, "features": other})
    with pytest.raises(InputError, match="'g-r' is the difference of r and g here, and of g and r"):
        predict(model[0], catalog)


def test_units_of_a_difference_that_are_not_stated_are_said(model, table):
    classifier, expected = model
    for name in ("g", "e_g", "r", "e_r", "F", "F_var"):
        table[name].unit = None
    with pytest.warns(UserWarning, match=r"states no units: .* r in mag, g-r in mag, flux in mJy"):
        found = predict(classifier, table)
    np.testing.assert_allclose(found["p_qso"], expected[:, 0], rtol=1e-9)
