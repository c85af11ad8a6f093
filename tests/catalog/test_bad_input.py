"""Real files, corrupted: one line that names column and row and says what to do."""

import gzip
import urllib.error

import astropy.utils.data
import numpy as np
import pandas as pd
import pytest

from gpal.catalog import load_catalog, release_files
from gpal.catalog.registry import catalogs_folder
from gpal.catalog.schema import Schema
from gpal.errors import InputError


def message(*arguments, **options) -> str:
    """What load_catalog says, checked to be a single line."""
    with pytest.raises(InputError) as caught:
        load_catalog(*arguments, **options)
    text = str(caught.value)
    assert text and "\n" not in text
    return text


@pytest.fixture
def saved(tmp_path, extract_table):
    """Write the damaged 4FGL extract; its header still says what it is an extract of."""

    def write(table=extract_table):
        path = tmp_path / "damaged.fits"
        table.write(path, overwrite=True)
        return path

    return write


def test_missing_column(extract_table, saved):
    extract_table.rename_column("LP_beta", "LP_Beta1")
    text = message(saved())
    assert text.startswith("damaged.fits: no column 'LP_beta'")
    assert "LP_Beta1" in text


def test_wrong_unit(extract_table, saved):
    extract_table["Pivot_Energy"].unit = "cm"
    text = message(saved())
    assert "'Pivot_Energy' has the unit 'cm'" in text and "'MeV'" in text


def test_convertible_unit_is_converted_with_its_error(extract_table, saved):
    for column in ("Flux1000", "Unc_Flux1000"):
        extract_table[column] = np.asarray(extract_table[column], float) * 1e4
        extract_table[column].unit = "ph / (m2 s)"
    converted, plain = load_catalog(saved()), load_catalog("4fgl")
    np.testing.assert_allclose(converted.X, plain.X, rtol=1e-12)
    np.testing.assert_allclose(converted.X_err, plain.X_err, rtol=1e-12)


def test_declination_beyond_the_pole(extract_table, saved):
    extract_table["DEJ2000"][4] = 95
    name = extract_table["Source_Name"][4]
    assert f"column 'DEJ2000', row 4 ({name}): 95 degrees is not between" in message(saved())


def test_negative_error_of_a_band(tmp_path):
    frame = pd.DataFrame({"E1": [1.0], "E2": [2.0], "F1": [1.0], "F2": [2.0]})
    frame.assign(e1=[0.1], e2=[-0.1]).to_csv(tmp_path / "mine.csv")
    bands = {k: {"nuFnu": f"E{k}", "flux": f"F{k}", "error": f"e{k}"} for k in "12"}
    mapping = {"features": {"ratio": {"hardness": ["1", "2"]}}, "bands": bands}
    assert "column 'e2', row 0" in message(tmp_path / "mine.csv", mapping=mapping)


def test_error_whose_unit_is_not_that_of_its_value(extract_table, saved):
    extract_table["Unc_LP_Index"].unit = "cm"
    extract_table["LP_Index"].unit = "s"
    assert "'Unc_LP_Index' has the unit 'cm'" in message(saved())


def test_negative_error(extract_table, saved):
    extract_table["Unc_Flux1000"][17] *= -1
    text = message(saved())
    name = extract_table["Source_Name"][17]
    assert f"column 'Unc_Flux1000', row 17 ({name}): -" in text


@pytest.mark.parametrize(
    ("column", "value", "rule", "said"),
    [
        ("LP_Index", np.nan, {"missing": "forbid"}, "column 'LP_Index', row 0"),
        ("Unc_LP_Index", np.nan, {"missing_error": "forbid"}, "column 'LP_Index', row 0"),
    ],
)
def test_missing_value_where_the_schema_forbids_it(extract_table, saved, column, value, rule, said):
    extract_table[column][0] = value
    assert said in message(saved(), mapping={"features": {"index": rule}})


def test_logarithm_of_a_negative_value(extract_table, saved):
    extract_table["Flux1000"][3] = -1e-9
    text = message(saved())
    assert "'log_flux', row 3" in text and "floor" in text


def test_text_in_a_numeric_column(extract_table, saved):
    extract_table.replace_column("LP_beta", extract_table["CLASS1"])
    assert "column 'LP_beta' holds text" in message(saved())


def test_the_text_in_a_numeric_column_is_named(tmp_path):
    (tmp_path / "mine.csv").write_text("F\n0.491\nNA\n0.2\nabc\n")
    text = message(tmp_path / "mine.csv", mapping={"features": {"flux": "F"}})
    assert "column 'F' holds text, not numbers (row 3: 'abc')" in text


def test_duplicate_identifiers(extract_table, saved):
    extract_table["Source_Name"][9] = extract_table["Source_Name"][4]
    text = message(saved())
    assert "'Source_Name'" in text and "rows 4 and 9" in text


def test_empty_table(extract_table, saved):
    assert "no rows" in message(saved(extract_table[:0]))


@pytest.mark.parametrize("keep", [10_000, 200_000])
def test_truncated_fits(tmp_path, saved, keep):
    path = saved()
    path.write_bytes(path.read_bytes()[:keep])
    text = message(path)
    assert text.startswith("damaged.fits: ") and "truncated: fetch it again" in text


def test_truncated_extract(tmp_path):
    path = tmp_path / "4fgl.fits.gz"
    path.write_bytes((catalogs_folder() / "4fgl.fits.gz").read_bytes()[:100_000])
    assert "truncated" in message(path)


def test_not_a_fits_file(tmp_path):
    path = tmp_path / "gll_psc_v20.fit"
    path.write_bytes(gzip.compress(b"<html>404</html>"))
    assert "not a readable fits file" in message(path)


def test_wrong_extension(extract_table, saved):
    text = message(saved(), mapping={"hdu": "Components"})
    assert "no extension 'Components'" in text


def test_unknown_class(dr4):
    with pytest.raises(InputError, match=r"unknown class 'fsqr' in column 'CLASS1'.*'fsrq'"):
        dr4.labelled(["bll", "fsqr"])


def test_msp_before_dr3():
    with pytest.raises(InputError, match=r"no class 'msp' in 4FGL: .* only from 4FGL-DR3 on"):
        load_catalog("4fgl").labelled(["bll", "psr", "msp"])


def test_unknown_name_and_missing_file(tmp_path):
    assert "did you mean '4fgl-dr4'" in message("4fgl-d4")
    assert "check the path" in message(tmp_path / "nothing.fits")


def test_file_of_no_known_release(tmp_path, extract_table):
    pd.DataFrame({"F": [1.0]}).to_csv(tmp_path / "mine.csv")
    assert "schema=" in message(tmp_path / "mine.csv")
    (tmp_path / "mine.docx").write_text("")
    assert "unknown file type" in message(tmp_path / "mine.docx")


def test_features_that_are_not_there():
    assert "'index'" in message("4fgl", features=["indx"])
    assert "no feature set 'papers'" in message("4fgl", features="papers")
    assert "no features" in message("4fgl", features=[])


@pytest.mark.parametrize("cut", ["Signif_Avg above 30", "> 30", "Signif_Avg > high"])
def test_unreadable_cut(cut):
    assert "write 'column > number'" in message("4fgl", cuts=cut)


def test_cut_that_leaves_nothing():
    assert "no source passes" in message("4fgl", cuts="Signif_Avg > 1e9")


@pytest.mark.parametrize(
    ("mapping", "said"),
    [
        ({"features": {"f": "F"}, "clas": "T"}, "unknown key 'clas' in the schema"),
        ({"features": {"f": {"column": "F", "eror": "e"}}}, "unknown key 'features.f.eror'"),
        ({"features": {"f": {"column": "F", "transform": "log"}}}, "transform = 'log'"),
        ({"features": {"f": {"column": "F", "floor": "low"}}}, "'features.f.floor'"),
        ({"features": {"f": {"error": "e"}}}, "either a 'column' or"),
        ({"features": {"f": {"hardness": ["a", "b"]}}}, "names the band 'a'"),
        ({"features": {}, "id": "N"}, "no features"),
        ({"features": ["F"]}, "'features' must be a table"),
        ({"features": {"f": "F"}, "feature_sets": {"default": ["g"]}}, "names 'g'"),
        ({"features": {"f": "F"}, "id": 3}, "'id' in the schema must be text, got 3"),
        (
            {"features": {"f": "F"}, "classes": {"undecided": [-1]}},
            "'classes.undecided' in the schema must be a list, each text, got [-1]",
        ),
        ({"features": {"f": "F"}, "ellipse": {"semimajor": "a"}}, "needs 'semiminor'"),
    ],
)
def test_schema_at_fault(tmp_path, mapping, said):
    pd.DataFrame({"F": [1.0]}).to_csv(tmp_path / "mine.csv")
    assert said in message(tmp_path / "mine.csv", mapping=mapping)


def test_a_mapping_beside_a_whole_schema(tmp_path):
    pd.DataFrame({"F": [1.0]}).to_csv(tmp_path / "mine.csv")
    schema = Schema.from_dict({"features": {"f": "F"}})
    assert "mapping=" in message(
        tmp_path / "mine.csv", schema=schema, mapping={"features": {"g": "F"}}
    )


def test_error_scale_of_an_unknown_feature():
    text = message("4fgl", error_scale={"index": 1.1, "betta": 1.2})
    assert "error_scale names 'betta'; did you mean 'beta'" in text
    assert "positive numbers" in message("4fgl", error_scale={"index": "large"})


def test_toml_schema_at_fault(tmp_path):
    table, schema = tmp_path / "mine.csv", tmp_path / "mine.toml"
    pd.DataFrame({"F": [1.0]}).to_csv(table)
    assert "no schema file" in message(table, schema=schema)
    schema.write_text("features = ")
    assert "not valid TOML" in message(table, schema=schema)
    schema.write_text('extends = "4fgll"')
    assert "no such schema; did you mean '4fgl'" in message(table, schema=schema)


def test_without_network_the_message_says_what_to_do(monkeypatch):
    def no_network(*_, **__):
        raise urllib.error.URLError("name resolution failed")

    monkeypatch.setattr(release_files, "_local_file", lambda schema: None)
    monkeypatch.setattr(astropy.utils.data, "download_file", no_network)
    text = message("4fgl-dr3")
    assert "gll_psc_v29.fit" in text and "https://" in text and "fermipy" in text


def test_a_download_with_another_checksum_is_refused(monkeypatch, tmp_path):
    (tmp_path / "contents").write_bytes(b"something else")
    monkeypatch.setattr(release_files, "_local_file", lambda schema: None)
    monkeypatch.setattr(
        astropy.utils.data, "download_file", lambda *_, **__: str(tmp_path / "contents")
    )
    monkeypatch.setattr(astropy.utils.data, "clear_download_cache", lambda url: None)
    assert "SHA-256 differs" in message("4fgl-dr3")
