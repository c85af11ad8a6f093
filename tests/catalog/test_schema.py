"""Schemas of others: names that can be printed, finite numbers, and no circle of inheritance."""

from __future__ import annotations

import os

import pytest

from gpal.catalog import load_catalog
from gpal.catalog.registry import find_schema
from gpal.catalog.schema import Schema
from gpal.errors import InputError


@pytest.mark.parametrize(
    "name", ["", " a", "a\n", "\x1b[31m", "a\u202eb", "a\0", "x" * 65, "\ud800"]
)
def test_a_name_that_cannot_be_one(name):
    with pytest.raises(InputError, match=r"^feature '.*call the feature otherwise$"):
        Schema.from_dict({"features": {name: "F"}})


def test_names_of_every_script_and_64_characters():
    names = ["β", "log flux (1 GeV)", "$x$", "x" * 64]
    assert list(Schema.from_dict({"features": dict.fromkeys(names, "F")}).features) == names


def test_names_that_differ_in_capitals_only():
    with pytest.raises(
        InputError, match="two feature names, 'flux' and 'Flux', are the same but for capitals"
    ):
        Schema.from_dict({"features": {"flux": "F", "index": "G", "Flux": "H"}})


@pytest.mark.parametrize("number", ["nan", "inf", "-inf", "1" + "0" * 400])
def test_a_number_that_is_not_finite(tmp_path, number):
    path = tmp_path / "mine.toml"
    path.write_text(f'[features.flux]\ncolumn = "F"\nfloor = {number}\n')
    with pytest.raises(InputError, match=r"'features.flux.floor' in the schema must be"):
        find_schema(path)


@pytest.mark.parametrize(
    "text", ["a = " + "1" * 5000, "a = " + "[" * 20_000, "a = \x00", "a = 1\na = 2"]
)
def test_what_is_no_toml(tmp_path, text):
    path = tmp_path / "mine.toml"
    path.write_text(f"a = {text}")
    with pytest.raises(InputError, match="is not valid TOML"):
        find_schema(path)


def test_a_byte_order_mark_is_no_part_of_a_schema(tmp_path):
    """Some editors begin a file with it, and show it to nobody."""
    path = tmp_path / "mine.toml"
    path.write_text('[features]\nflux = "F"\n', encoding="utf-8-sig")
    assert path.read_bytes().startswith(b"\xef\xbb\xbf")
    assert find_schema(path).features["flux"].column == "F"


def test_a_folder_in_place_of_a_schema(tmp_path):
    (tmp_path / "mine.toml").mkdir()
    with pytest.raises(InputError, match="cannot read the schema"):
        find_schema(tmp_path / "mine.toml")


def test_schemas_that_extend_each_other(tmp_path):
    for name, other in (("a", "b"), ("b", "c"), ("c", "a")):
        (tmp_path / f"{name}.toml").write_text(f'extends = "{other}"\n[features]\nf = "F"\n')
    with pytest.raises(InputError, match="extends = 'a': no such schema"):
        find_schema(tmp_path / "a.toml")


@pytest.mark.parametrize(
    ("calibration", "words"),
    [
        ("scale.index = 0", "positive"),
        ("scale.index = nan", "must be"),
        ("scale.index = 1\ncorrelation.index = 0.5", "name two features"),
        ('scale.index = 1\ncorrelation."index,beta" = 2', "a number from -1 to 1"),
    ],
)
def test_an_error_calibration_that_is_none(tmp_path, calibration, words):
    path = tmp_path / "errors.toml"
    path.write_text(f"[error_calibration]\n{calibration}\n")
    with pytest.raises(InputError, match=words):
        load_catalog("4fgl", error_scale=path)


def test_classes_are_known_whatever_their_capitals():
    classes = Schema.from_dict(
        {
            "class": "kind",
            "classes": {"absent": {"MSP": "not told apart"}, "names": {"STAR": "a star"}},
            "features": {"x": "x"},
        }
    ).classes
    assert classes.absent == {"msp": "not told apart"} and classes.names == {"star": "a star"}


@pytest.mark.parametrize("limit", ["nan", "NA", "1_000", "\u0661"])
def test_a_cut_at_what_is_no_number(limit):
    with pytest.raises(InputError, match="cannot read the cut"):
        load_catalog("4fgl", cuts=f"Signif_Avg != {limit}")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_a_schema_that_is_no_file_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "mine.toml")
    with pytest.raises(InputError, match="it is no file"):
        find_schema(tmp_path / "mine.toml")


def test_a_schema_of_any_size_is_not_read(tmp_path):
    path = tmp_path / "mine.toml"
    with open(path, "wb") as file:
        file.truncate(10**8)
    with pytest.raises(InputError, match="has more than 10000000 bytes"):
        find_schema(path)
