"""A published list: what is read of it, what is refused, and sums over its classes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from astropy.table import Table

from gpal.errors import InputError
from gpal.evaluation import ProbabilityList

THREE = ("bll", "fsrq", "psr")
GROUPS = {"bll": ["bll"], "fsrq": ["fsrq"], "psr": ["psr", "msp"]}
COLUMNS = {"bll": "P_BLL", "fsrq": "P_FSRQ", "psr": "P_PSR"}


def printed(**changes):
    """Three sources as a paper prints them."""
    rows = {
        "Source_Name": ["4FGL J0001.2+4741", "4FGL  J0002.1-6728 ", "4FGL J0003.1-5248"],
        "P_BLL": [0.62, 0.1, 0.33],
        "P_FSRQ": [0.3, 0.0, 0.33],
        "P_PSR": [0.08, 0.9, 0.33],
    }
    return pd.DataFrame(rows | changes)


def read(frame, folder, **options):
    path = folder / "published.csv"
    frame.to_csv(path, index=False)
    return ProbabilityList.read(path, "Source_Name", options.pop("columns", COLUMNS))


def test_a_table_of_any_format(tmp_path):
    frame = printed()
    expected = frame[[*COLUMNS.values()]].to_numpy()
    formats = {"csv": "csv", "fits": "fits", "vot": "votable", "ecsv": "ascii.ecsv"}
    for ending, format in formats.items():
        path = tmp_path / f"published.{ending}"
        Table.from_pandas(frame).write(path, format=format)
        found = ProbabilityList.read(path, "Source_Name", COLUMNS)
        assert found.classes == THREE
        assert found.names.tolist()[1] == "4FGL J0002.1-6728"
        np.testing.assert_array_equal(found.probabilities, expected)
        assert len(found.origin["sha256"]) == 64 and found.origin["file"] == path.name
    schema = tmp_path / "published.toml"
    columns = "".join(f'{name} = "{column}"\n' for name, column in COLUMNS.items())
    schema.write_text(f'file = "published.fits"\nname = "Source_Name"\n[probabilities]\n{columns}')
    np.testing.assert_array_equal(ProbabilityList.read(schema).probabilities, expected)


def test_elements_of_a_column(tmp_path):
    P = [[0.2, 0.8], [0.6, 0.4]]
    Table({"name": ["a", "b"], "P": P}).write(tmp_path / "published.fits")
    found = ProbabilityList.read(
        tmp_path / "published.fits", probabilities={"psr": "P[1]", "bll": "P[0]"}
    )
    assert found.classes == ("psr", "bll")
    np.testing.assert_array_equal(found.probabilities, np.array(P)[:, ::-1])
    with pytest.raises(InputError, match="array of shape"):
        ProbabilityList.read(tmp_path / "published.fits", probabilities={"psr": "P"})


def test_columns_of_a_table_of_gpals_are_found(tmp_path):
    path = tmp_path / "mine.csv"
    other = {"p_bll_std": 0.1, "p_bll_train": 0.9, "p_psr_prior": 0.2, "entropy": 0.3}
    pd.DataFrame({"name": ["a", "b"], "p_bll": 0.25, "p_psr": 0.75, **other}).to_csv(path)
    found = ProbabilityList.read(path)
    assert found.classes == ("bll", "psr")
    assert found.probabilities.tolist() == [[0.25, 0.75]] * 2


def test_digits_and_sums(tmp_path):
    found = read(printed(), tmp_path)
    assert found.decimals == 2
    P = found.at(GROUPS)
    np.testing.assert_allclose(P[2], 1 / 3)  # .33 + .33 + .33
    np.testing.assert_allclose(P[0], [0.62, 0.3, 0.08])
    agn = found.at({"agn": ["bll", "fsrq", "bcu"], "psr": ["psr"]})
    np.testing.assert_allclose(agn, [[0.92, 0.08], [0.1, 0.9], [2 / 3, 1 / 3]])
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(3), size=50)
    names = [str(k) for k in range(50)]
    for digits in (3, 4, 5, 6):
        assert ProbabilityList(names, THREE, P.round(digits)).decimals == digits
        single = P.round(digits).astype(np.float32)
        assert ProbabilityList(names, THREE, single).decimals == digits
    assert ProbabilityList(names, THREE, P.astype(np.float32).round(3)).decimals == 3
    assert ProbabilityList(names, THREE, P).decimals is None
    assert ProbabilityList(names, THREE, P.astype(np.float32)).decimals is None
    assert ProbabilityList(names, THREE, np.eye(3)[rng.integers(3, size=50)]).decimals == 2


def test_what_is_printed_alike_is_alike():
    """.10 + .35 and .09 + .25 are not .45 and .34 in binary; nor are these where a row's sum is
    not 1 in binary."""
    P = [[0.10, 0.35, 0.45, 0.10], [0.09, 0.25, 0.34, 0.32], [0.2, 0.14, 0.34, 0.33]]
    found = ProbabilityList(["a", "b", "c"], ["bll", "fsrq", "other", "psr"], P)
    agn = found.at({"agn": ["bll", "fsrq"], "other": ["other"], "psr": ["psr"]})
    assert (agn[:, 0] == agn[:, 1]).all()
    exact = np.random.default_rng(0).dirichlet(np.ones(3), size=50)
    whole = ProbabilityList([str(k) for k in range(50)], THREE, exact).at(GROUPS)
    np.testing.assert_allclose(whole, exact, rtol=1e-15)  # of an unrounded list


def test_coarser_and_finer_classes():
    coarse = ProbabilityList(["a"], ["AGN", "psr"], [[0.25, 0.75]])
    assert coarse.at({"agn": ["bll", "fsrq"], "psr": ["psr", "msp"]}).tolist() == [[0.25, 0.75]]
    fine = ProbabilityList(["a"], ["bll", "psr", "msp"], [[0.25, 0.25, 0.5]])
    assert fine.at({"bll": ["bll"], "psr": ["psr", "msp"]}).tolist() == [[0.25, 0.75]]
    assert fine.members({"bll": ["bll"], "psr": ["psr"], "msp": ["msp"]})["psr"] == ["psr"]
    with pytest.raises(InputError, match=r"'AGN' is in none of bll, fsrq, psr.*--class"):
        coarse.at(GROUPS)
    with pytest.raises(InputError, match="nothing of 'bll'"):
        coarse.at(GROUPS, conditional=True)
    with pytest.raises(InputError, match=r"nothing of 'msp'.*--class"):
        coarse.at({"agn": ["bll"], "psr": ["psr"], "msp": ["msp"]})


def test_conditional_probabilities():
    more = ProbabilityList(["a", "b"], [*THREE, "snr"], [[0.4, 0.2, 0.2, 0.2], [0, 0, 1, 0]])
    with pytest.raises(InputError, match=r"'snr' is in none.*--conditional"):
        more.at(GROUPS)
    np.testing.assert_allclose(more.at(GROUPS, True), [[0.5, 0.25, 0.25], [0, 0, 1]])
    part = ProbabilityList(["a", "b"], THREE, [[0.4, 0.2, 0.2], [0, 0, 1]])
    with pytest.raises(InputError, match=r"row 0 \('a'\).*sum to 0.8, not to one"):
        part.at(GROUPS)
    np.testing.assert_allclose(part.at(GROUPS, True), more.at(GROUPS, True))
    none = ProbabilityList(["a", "b"], THREE, [[0.4, 0.2, 0.4], [0, 0, 0]])
    with pytest.raises(InputError, match=r"row 1 \('b'\).*sum to 0"):
        none.at(GROUPS, True)


@pytest.mark.parametrize("last, fits", [(0.235, True), (0.265, True), (0.23, False), (0.27, False)])
def test_rounding_explains_so_much_and_no_more(last, fits):
    """Four classes of two digits: up to 0.02; of more digits 0.002."""
    names = ["bll", "fsrq", "psr", "msp"]
    groups = {name: [name] for name in names}
    of_two = ProbabilityList(["a"], names, [[0.25, 0.25, 0.25, round(last, 2)]])
    assert of_two.decimals == 2
    np.testing.assert_allclose(of_two.at(groups).sum(axis=1), 1)
    of_three = ProbabilityList(["a"], names, [[0.251, 0.25, 0.25, last]])
    with pytest.raises(InputError, match="not to one"):
        of_three.at(groups)
    if not fits:
        with pytest.raises(InputError, match="not to one"):
            ProbabilityList(["a"], names, [[0.25, 0.25, 0.24 if last < 0.25 else 0.26, last]]).at(
                groups
            )


def test_a_row_without_numbers_says_nothing(tmp_path):
    found = read(
        printed(P_BLL=[0.6, np.nan, 0.2], P_FSRQ=[0.4, np.nan, 0.2], P_PSR=[0.0, np.nan, 0.6]),
        tmp_path,
    )
    assert found.silent.tolist() == [False, True, False] and found.decimals == 2
    assert np.isnan(found.at(GROUPS)).all(axis=1).tolist() == [False, True, False]


@pytest.mark.parametrize(
    "changes, words",
    [
        (
            {"P_BLL": [0.62, np.nan, 0.33]},
            r"row 1 \('4FGL J0002.1-6728'\), column 'P_BLL'.*missing",
        ),
        ({"P_PSR": [8.0, 90.0, 33.0]}, r"row 0 .*column 'P_PSR'.* 8 is no probability"),
        ({"P_PSR": [0.08, -0.9, 0.33]}, "row 1 .*-0.9 is no probability"),
        ({"P_PSR": [0.08, np.inf, 0.33]}, "row 1 .*inf is no probability"),
        ({"P_PSR": [0.08, 0.9, "high"]}, "row 2: 'high'"),
        ({"Source_Name": ["a  b", "a b", "c"]}, "'a b' is there twice, in rows 0 and 1"),
        ({"Source_Name": ["a", "", "c"]}, "row 1 has no name"),
        ({"P_BLL": np.nan, "P_FSRQ": np.nan, "P_PSR": np.nan}, "no row holds a probability"),
    ],
)
def test_refused(changes, words, tmp_path):
    with pytest.raises(InputError, match=rf"^published.csv: .*{words}"):
        read(printed(**changes), tmp_path)


def test_columns_that_are_not_there(tmp_path):
    frame = printed()
    with pytest.raises(InputError, match=r"no column 'P_AGN'; .*There are: Source_Name, P_BLL"):
        read(frame, tmp_path, columns={"agn": "P_AGN"})
    with pytest.raises(InputError, match=r"no column 'name'; say which columns"):
        ProbabilityList.read(tmp_path / "published.csv")
    with pytest.raises(InputError, match=r"no column p_CLASS.*CLASS=COLUMN"):
        ProbabilityList.read(tmp_path / "published.csv", "Source_Name")
    for twice in ({**COLUMNS, "psr": "P_BLL"}, {**COLUMNS, "psr": "Source_Name"}):
        with pytest.raises(InputError, match=rf"column '{twice['psr']}' is named twice.*own$"):
            read(frame, tmp_path, columns=twice)
    with pytest.raises(InputError, match="no such file"):
        ProbabilityList.read(tmp_path / "missing.csv")
    with pytest.raises(InputError, match="no such file"):
        ProbabilityList.read(tmp_path)  # a folder without results


@pytest.mark.parametrize(
    "content, words",
    [
        ('name = "Source_Name"\n', "needs file"),
        ('file = "p.csv"\nnames = "Source_Name"\n', "'names' is not one of"),
        ('file = "p.csv"\n[probabilities]\nbll = 3\n', "needs file"),
        ('file = "p.csv"\nprobabilities = "bll"\n', "'probabilities' is not one of"),
        ("file = ", "not valid TOML"),
    ],
)
def test_a_toml_file_that_says_something_else(content, words, tmp_path):
    path = tmp_path / "list.toml"
    path.write_text(content)
    with pytest.raises(InputError, match=words):
        ProbabilityList.read(path)
    with pytest.raises(InputError, match="names the columns itself"):
        ProbabilityList.read(path, "Source_Name")


@pytest.mark.parametrize(
    "names, classes, P, words",
    [
        (["a"], ["x", "y"], [[0.5, 0.5], [0.5, 0.5]], "one row per source"),
        (["a"], ["x"], [[0.5, 0.5]], "one row per source"),
        ([], [], np.empty((0, 0)), "one row per source"),
        (["a"], ["x", "X"], [[0.5, 0.5]], "a class is there twice"),
    ],
)
def test_arrays_that_are_no_list(names, classes, P, words):
    with pytest.raises(InputError, match=words):
        ProbabilityList(names, classes, P)


def test_a_class_and_its_parts_do_not_count_twice():
    both = ProbabilityList(["a"], ["bll", "fsrq", "agn", "psr"], [[0.3, 0.2, 0.5, 0.5]])
    with pytest.raises(InputError, match=r"'agn' and classes that are in it, bll, fsrq"):
        both.at({"agn": ["bll", "fsrq"], "psr": ["psr"]}, conditional=True)


def test_columns_of_a_frame_are_those_of_the_classes_and_names_are_names():
    P = pd.DataFrame({"psr": [0.9], "bll": [0.1]})
    with pytest.raises(
        InputError, match=r"probabilities\[\[\.\.\.\]\] in the order of the classes"
    ):
        ProbabilityList(["A"], ["bll", "psr"], P)
    ours = P.rename(columns="p_{}".format)[["p_bll", "p_psr"]]
    assert ProbabilityList(["A"], ["bll", "psr"], ours).probabilities.tolist() == [[0.1, 0.9]]
    for names in (np.ma.array(["a", "b"], mask=[0, 1]), ["a", None], ["a", np.nan]):
        with pytest.raises(InputError, match="the name of row 1 is"):
            ProbabilityList(names, ["bll", "psr"], [[0.5, 0.5]] * 2)
    masked = np.ma.array([[0.5, 0.5], [0.1, 0.9]], mask=[[0, 0], [1, 1]])
    assert ProbabilityList(["a", "b"], ["bll", "psr"], masked).silent.tolist() == [False, True]
