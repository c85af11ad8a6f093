"""Which names can be written: what is accepted survives a FITS file, what is refused says why."""

from __future__ import annotations

import numpy as np
import pytest
from astropy.table import Table
from hypothesis import given
from hypothesis import strategies as st

from gpal.errors import InputError
from gpal.files.fits import write_fits
from gpal.names import (
    check_classes,
    check_file_name,
    check_names,
    check_seed,
    check_words,
    probability_column,
)

KINDS = ("", "_std", "_train", "_prior")
NAMES = st.lists(
    st.text(min_size=1, max_size=70)
    | st.sampled_from(["a", "A", "a_std", "b'c", "µ", "a:b", "Straße"]),
    min_size=2,
    max_size=4,
)


@given(NAMES)
def test_columns_of_accepted_classes_survive_a_fits_file(tmp_path_factory, names):
    try:
        check_classes(names)
    except InputError as error:
        assert str(error).isprintable()
        return
    columns = [probability_column(name, kind) for name in names for kind in KINDS]
    assert len({column.lower() for column in columns}) == len(columns)
    table = Table({column: np.full(1, float(k)) for k, column in enumerate(columns)})
    path = tmp_path_factory.mktemp("names") / "table.fits"
    write_fits(table, path)
    again = Table.read(path)
    found = [name.encode().decode("unicode_escape") for name in again.colnames]
    assert found == columns
    assert [again[name][0] for name in again.colnames] == list(range(len(columns)))


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        (["a", "a_std"], "'a' and 'a_std' both make a column 'p_a_std'"),
        (["a_train", "a"], "both make a column"),
        (["a", "A_prior"], "both make a column"),
        (["A", "a"], "the same but for capitals"),
        (["a", "a"], "the same but for capitals"),
        (["MIXED", "a"], "MIXED stands for"),
        (["a", "mixed"], "MIXED stands for"),
        (["a", "b" * 500], "500 characters"),
        (["a", "β" * 20], "too long for a FITS header"),
        (["a", "b\nc"], r"'b\\nc': a name is made of printable"),
        (["a", "\x1b[31mb"], "printable"),
        (["a", "\ud800"], r"'\\ud800'"),
        (["a", "\u202eb"], "printable"),
        (["a", "b "], "without blanks around"),
        (["a", ""], "printable"),
        (["a", 3], "is text, not 3"),
    ],
)
def test_classes_that_no_table_can_hold(classes, message):
    with pytest.raises(InputError, match=message) as caught:
        check_classes(classes)
    assert str(caught.value).isprintable() and len(str(caught.value)) < 400


def test_what_is_usual_is_accepted():
    check_classes(["bll", "fsrq", "psr"])
    check_classes(["0", "1"])
    check_classes(["True", "False", "NA", "#1", "=1+1", "$x$", "a_b^c", "blazár", "it's", "_"])
    check_names("feature", ["pl_index", "log10(flux)", "hr_12"])
    check_words("source name", ["4FGL J0000.3-7355", "#1", "β Cas", ""])
    check_file_name("results/été 2")
    for seed in (0, 7, np.int64(3), 2**32 - 1):
        check_seed(seed)


@pytest.mark.parametrize("seed", [-1, 2**32, 0.5, "7", None, True])
def test_seeds_that_no_generator_takes(seed):
    with pytest.raises(InputError, match="whole number from 0"):
        check_seed(seed)


@pytest.mark.parametrize("word", ["a\nb", "\x1b[2J", " a", "\ud800", "a" * 201])
def test_source_names_that_no_table_can_hold(word):
    with pytest.raises(InputError, match="row 1") as caught:
        check_words("source name", ["fine", word])
    assert str(caught.value).isprintable()


def test_file_names_that_no_message_can_show():
    for name in ("a\nb", "\x1b[2J", "a\0b", "caf\udce9"):
        with pytest.raises(InputError, match="another name for the output"):
            check_file_name(f"results/{name}")
