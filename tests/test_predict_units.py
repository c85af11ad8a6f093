"""Numbers that were converted when a model was fitted, in a table that leaves their unit out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from astropy.table import Table

from gpal import GPClassifier, load_catalog
from gpal.errors import InputError
from gpal.jobs.prediction import predict
from gpal.provenance import provenance

pytestmark = pytest.mark.filterwarnings(
    "ignore:the table states no units", "ignore:a unit is stated by one"
)
BANDS = {
    name: {"flux": name, "nuFnu": f"nu{name}", "error": f"{name}_err", "energy": energies}
    for name, energies in (("F", [1, 2]), ("G", [2, 3]))
}


def fluxes(**units: str) -> Table:
    """Columns of about 1 Jy and errors of about .1 Jy, in these units."""
    rng, n = np.random.default_rng(0), 40
    table = Table({"name": [f"s{i}" for i in range(n)], "kind": ["a", "b"] * (n // 2)})
    for column, unit in units.items():
        table[column] = rng.uniform(1, 2, n) * (0.1 if "err" in column else 1.0)
        table[column].unit = "Jy"
        table[column].convert_unit_to(unit)
    return table


def fitted(table: Table, feature: Mapping[str, Any], folder: Any) -> GPClassifier:
    mapping: dict[str, Any] = {"id": "name", "class": "kind", "features": {"f": feature}}
    if "hardness" in feature:
        mapping["bands"] = BANDS
    table.write(folder / "known.ecsv")
    known = load_catalog(folder / "known.ecsv", mapping=mapping)
    model = GPClassifier(max_rounds=0, n_inducing=5, input_noise="first_order")
    model.fit(known.measurements, known.y)
    model.save(folder / "model.npz", provenance(known.provenance))
    return GPClassifier.load(folder / "model.npz")


def limits(table: Table) -> Table:
    table["F"][:3] = np.nan
    return table


@pytest.mark.parametrize(
    ("feature", "units", "lost"),
    [
        ({"column": "F"}, {"F": "Jy", "F_err": "uJy"}, "F_err"),
        ({"column": "F", "unit": "mJy"}, {"F": "Jy", "F_err": "Jy"}, "F"),
        ({"ratio": ["F", "G"], "error": ["none", "none"]}, {"F": "Jy", "G": "mJy"}, "G"),
        (
            {"difference": ["F", "G"]},
            {"F": "Jy", "G": "Jy", "F_err_lo": "mJy", "F_err_hi": "mJy", "G_err": "Jy"},
            "F_err_hi",
        ),
        ({"column": "F", "error": "none", "upper_limit": "G"}, {"F": "Jy", "G": "mJy"}, "G"),
    ],
)
def test_numbers_that_were_converted_need_their_unit(feature, units, lost, tmp_path):
    table = fluxes(**units)
    model = fitted(limits(table) if "upper_limit" in feature else table, feature, tmp_path)
    expected = predict(model, table)["p_a"]
    table.write(tmp_path / "bare.csv")
    with pytest.raises(InputError, match="column 'F' states no unit here; when the model was"):
        predict(model, tmp_path / "bare.csv")
    bare = table.copy()
    bare[lost].unit = None
    with pytest.raises(InputError, match=f"column '{lost}' states no unit here"):
        predict(model, bare)
    for column in units:
        table[column].convert_unit_to("Jy")
    np.testing.assert_allclose(predict(model, table)["p_a"], expected)


def test_also_by_the_other_name_that_a_column_has_here(tmp_path):
    table = fluxes(F="Jy", F_err="mJy")
    model = fitted(table, {"column": "F"}, tmp_path)
    expected = predict(model, table)["p_a"]
    table.rename_column("F_err", "e_F")
    np.testing.assert_allclose(predict(model, table)["p_a"], expected)
    table["e_F"].unit = None
    with pytest.raises(InputError, match="column 'e_F' states no unit here"):
        predict(model, table)


def test_also_of_the_bands_of_a_hardness_ratio(tmp_path):
    table = fluxes(F="Jy", F_err="mJy", nuF="Jy", G="Jy", G_err="mJy", nuG="Jy")
    model = fitted(table, {"hardness": ["F", "G"]}, tmp_path)
    table["F_err"].unit = None
    mapping = {"id": "name", "bands": BANDS, "features": {"f": {"hardness": ["F", "G"]}}}
    table.write(tmp_path / "new.ecsv")
    with pytest.raises(InputError, match="column 'F_err' states no unit here"):
        predict(model, load_catalog(tmp_path / "new.ecsv", mapping=mapping))


def test_members_of_a_ratio_of_two_things_have_errors_in_units_of_their_own(tmp_path):
    table = fluxes(F="Jy", F_err="Jy", G="Jy", G_err="Jy")
    table["G"].unit, table["G_err"].unit = "s", "ms"
    model = fitted(table, {"ratio": ["F", "G"]}, tmp_path)
    table["G_err"].unit = None
    with pytest.raises(InputError, match="column 'G_err' states no unit here"):
        predict(model, table)


def test_numbers_that_were_not_converted_are_taken_as_the_model_s(tmp_path):
    table = fluxes(F="Jy", F_err="Jy")
    model = fitted(table, {"column": "F"}, tmp_path)
    expected = predict(model, table)["p_a"]
    table.write(tmp_path / "bare.csv")
    with pytest.warns(UserWarning, match="states no units: taken to be those of the model"):
        found = predict(model, tmp_path / "bare.csv")["p_a"]
    np.testing.assert_allclose(found, expected)


def read(table: Table, feature: Mapping[str, Any], path: Any) -> Any:
    """By a schema that says how the feature is made."""
    table.write(path, overwrite=True)
    return load_catalog(path, mapping={"id": "name", "features": {"f": feature}})


@pytest.mark.parametrize(
    "constants",
    [
        {"transform": "log10", "floor": 1.3},
        {"above": 1.3},
        {"error": "none", "upper_limit": 1.3},
    ],
)
def test_numbers_of_a_schema_are_in_the_unit_of_the_fit(constants, tmp_path):
    table, path = fluxes(F="Jy", F_err="Jy"), tmp_path / "new.ecsv"
    limits(table)
    feature = {"column": "F", **constants}
    model = fitted(table, feature, tmp_path)
    expected = predict(model, table)["p_a"]
    np.testing.assert_array_equal(predict(model, read(table, feature, path))["p_a"], expected)
    for column in ("F", "F_err"):
        table[column].convert_unit_to("mJy")
    np.testing.assert_allclose(predict(model, table)["p_a"], expected)
    with pytest.raises(InputError, match=r"would be in the one or the other; give .* unit = 'Jy'"):
        predict(model, read(table, feature, path))
    found = predict(model, read(table, {**feature, "unit": "Jy"}, path))["p_a"]
    np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize("key", ["floor", "above"])
def test_another_constant_of_a_schema_is_refused(key, tmp_path):
    table = fluxes(F="Jy", F_err="Jy")
    model = fitted(table, {"column": "F", key: 1.3}, tmp_path)
    for other in ({key: 1.4}, {}):
        with pytest.raises(InputError, match=f"has {key} = .* here and 1.3 in the model"):
            predict(model, read(table, {"column": "F", **other}, tmp_path / "new.ecsv"))


def test_a_constant_in_another_unit_is_the_same_number_of_it(tmp_path):
    table, path = fluxes(F="Jy", F_err="Jy"), tmp_path / "new.ecsv"
    model = fitted(table, {"column": "F", "floor": 1.3}, tmp_path)
    expected = predict(model, table)["p_a"]
    in_mJy = {"column": "F", "unit": "mJy", "floor": 1300.0}
    np.testing.assert_allclose(predict(model, read(table, in_mJy, path))["p_a"], expected)
    for other in ({"floor": 1500.0}, {"floor": None}):
        with pytest.raises(InputError, match=r"has floor = .* here and 1.3 in the model, in Jy"):
            predict(model, read(table, {k: v for k, v in {**in_mJy, **other}.items() if v}, path))


@pytest.mark.filterwarnings("default:the table states no units")
def test_units_that_one_of_table_and_model_lacks_are_said_of_a_schema_too(tmp_path):
    table, bare = fluxes(F="Jy", F_err="Jy"), fluxes(F="Jy", F_err="Jy")
    bare["F"].unit = bare["F_err"].unit = None
    (tmp_path / "with").mkdir()
    (tmp_path / "without").mkdir()
    feature = {"column": "F"}
    with_units, without = (
        fitted(of, feature, tmp_path / name) for of, name in ((table, "with"), (bare, "without"))
    )
    with pytest.warns(UserWarning, match="states no units: taken to be those of the model, f in"):
        predict(with_units, read(bare, feature, tmp_path / "bare.ecsv"))
    with pytest.warns(UserWarning, match="without units, and the table states some: .* f in Jy"):
        predict(without, read(table, feature, tmp_path / "units.ecsv"))


@pytest.mark.parametrize("stated", [True, False])
def test_columns_that_stated_none_at_the_fit_need_none(stated, tmp_path):
    """The table that the model was fitted to is not refused."""
    table = fluxes(F="Jy", G="Jy", F_err_lo="mJy", F_err_hi="mJy", G_err="Jy")
    table["G_err"].unit = "Jy" if stated else None
    model = fitted(table, {"difference": ["F", "G"]}, tmp_path)
    assert len(predict(model, tmp_path / "known.ecsv")) == len(table)
    table["F_err_lo"].unit = None
    with pytest.raises(InputError, match="column 'F_err_lo' states no unit here"):
        predict(model, table)


def test_columns_that_nothing_is_read_from_need_none(tmp_path):
    table = fluxes(F="Jy", F_err="mJy")
    model = fitted(table, {"column": "F"}, tmp_path)
    expected = predict(model, table)["p_a"]
    table["flux"], table["flux_err"] = table["F"], table["F_err"]
    table["F_err"].unit = None
    mapping = {"id": "name", "features": {"f": "flux"}}
    table.write(tmp_path / "new.ecsv")
    found = predict(model, load_catalog(tmp_path / "new.ecsv", mapping=mapping))["p_a"]
    np.testing.assert_allclose(found, expected)
