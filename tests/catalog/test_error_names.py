"""The columns that hold errors, by the names that surveys give them."""

from __future__ import annotations

import pandas as pd
import pytest

from gpal.catalog import load_catalog
from gpal.catalog.error_names import error_names
from gpal.errors import InputError


@pytest.mark.parametrize(
    ("value", "error"),
    [
        *(("F", name) for name in ("Unc_F", "e_F", "F_e", "F_err", "F_error", "Ferr", "FERR")),
        *(("F", name) for name in ("F_unc", "F_sigma", "FSigma", "Err_F", "err_F", "sig_F")),
        *(("F", name) for name in ("sigma_F", "eF", "errF", "F_uncertainty", "F_stderr")),
        ("Flux", "Flux Error"),
        ("[Fe/H]", "e_[Fe/H]"),
        # with the band behind, SDSS and others
        ("psfMag_u", "psfMagErr_u"),
        ("PSFMAG_U", "PSFMAGERR_U"),
        ("mag_g_psf", "mag_err_g_psf"),
        ("mag_g_psf", "magerr_g_psf"),
        ("g_mag", "g_magErr"),
        ("u", "err_u"),
        ("modelFlux_z", "modelFluxErr_z"),
        ("MAG_AUTO", "MAGERR_AUTO"),  # SExtractor
        ("ML_FLUX_1", "ML_FLUX_ERR_1"),  # eROSITA
        ("parallax", "parallax_error"),  # Gaia
        ("phot_g_mean_flux", "phot_g_mean_flux_error"),
        ("gMeanPSFMag", "gMeanPSFMagErr"),  # Pan-STARRS
        ("g_psfFlux", "g_psfFluxErr"),  # LSST
        ("base_PsfFlux_instFlux", "base_PsfFlux_instFluxErr"),
        ("j_m", "j_msigcom"),  # 2MASS
        ("k_m", "k_cmsig"),
        ("j_m_k20fe", "j_msig_k20fe"),
        ("w1mpro", "w1sigmpro"),  # WISE
        ("W2FLUX", "W2SIGFLUX"),
        ("pmra", "sigpmra"),
    ],
)
def test_a_usual_name_is_found(tmp_path, value, error):
    columns = {value: [1.0, 2.0], error: [0.1, 0.2], "another": [1, 2], "another_err": [3, 4]}
    pd.DataFrame(columns).to_csv(tmp_path / "a.csv")
    catalog = load_catalog(tmp_path / "a.csv", mapping={"features": {"x": value}})
    assert catalog.X_err[:, 0].tolist() == [0.1, 0.2]
    assert catalog.provenance["schema"]["features"]["x"]["error"] == error


@pytest.mark.parametrize(
    ("value", "lower", "upper"),
    [
        ("F", "F_loerr", "F_uperr"),
        ("F", "F_err_lo", "F_err_hi"),
        ("F", "e_F", "E_F"),
        ("F", "F_lower_err", "F_upper_err"),
        ("F", "err_minus_F", "err_plus_F"),
        ("flux", "flux_nerr", "flux_perr"),
        ("flux", "flux_errl", "flux_erru"),
        ("pl_orbper", "pl_orbpererr2", "pl_orbpererr1"),  # NASA Exoplanet Archive
        ("ML_FLUX_1", "ML_FLUX_LOWERR_1", "ML_FLUX_UPERR_1"),
    ],
)
def test_a_lower_and_an_upper_error(tmp_path, value, lower, upper):
    pd.DataFrame({value: [1.0], upper: [0.4], lower: [-0.3]}).to_csv(tmp_path / "a.csv")
    catalog = load_catalog(tmp_path / "a.csv", mapping={"features": {"x": value}})
    assert catalog.X_err[0, 0] == pytest.approx((0.125) ** 0.5)
    assert catalog.provenance["schema"]["features"]["x"]["error"] == (lower, upper)


@pytest.mark.parametrize(
    ("value", "others"),
    [
        ("BV", ["E_BV"]),  # a reddening
        ("F", ["Func", "F_sig", "F_std", "F_lower", "F_upper", "Ferry"]),
        ("f_x", ["func_x"]),
        ("ma", ["sigma"]),
        ("parallax", ["parallax_over_error"]),
        ("psfMag_u", ["psfMagErr_g", "psfMagErr", "MagErr_u"]),
        ("mag", ["mag_u", "mag_u_err", "mag_l", "mag_l_err"]),
        ("F", ["F_lo", "F_lo_err", "F_hi", "F_hi_err"]),  # errors of the bounds
        ("F", ["F1", "F_err1", "F2", "F_err2"]),
        ("F", ["F_err_lo"]),  # one side alone
        ("f", ["F", "F_err"]),
        ("pic", ["epic"]),
        ("flux", ["fl_err_ux"]),
        ("f_x", ["ferrx"]),
    ],
)
def test_the_error_of_something_else(value, others):
    assert error_names(value, [value, *others]) == []


def test_a_reddening_beside_an_error_is_no_pair():
    assert error_names("BV", ["BV", "e_BV", "E_BV"]) == ["e_BV"]


def test_two_pairs_are_not_mixed():
    pairs = [("F_err_lo", "F_err_hi"), ("F_unc_lo", "F_unc_hi")]
    assert error_names("F", ["F", *pairs[0], *pairs[1]]) == pairs


@pytest.mark.parametrize(
    ("errors", "said"),
    [
        (["F_err", "Unc_F"], r"columns 'F_err' and 'Unc_F' may both .*: error = 'F_err'"),
        (["F_err", "F_err_lo", "F_err_hi"], r"'F_err' and \['F_err_lo', 'F_err_hi'\] may both"),
    ],
)
def test_errors_among_which_only_the_user_can_choose(tmp_path, errors, said):
    pd.DataFrame({"F": [1.0], **{name: [0.1] for name in errors}}).to_csv(tmp_path / "a.csv")
    with pytest.raises(InputError, match=said):
        load_catalog(tmp_path / "a.csv", mapping={"features": {"x": "F"}})


def test_a_feature_without_an_error_is_named_with_its_column_and_the_remedy(tmp_path):
    columns = {"F": [1.0], "F_std": [0.1], "G": [1.0], "H": [1.0], "H_err": [0.3], "K": [1.0]}
    pd.DataFrame(columns).to_csv(tmp_path / "a.csv")
    features = {"f": "F", "g": {"column": "G", "error": "none"}, "h": "H", "k": "K"}
    with pytest.warns(UserWarning) as caught:
        load_catalog(tmp_path / "a.csv", mapping={"features": features})
    assert [str(warning.message) for warning in caught] == [
        "no error column found for 'f' (column 'F'; is it in 'F_std'?), 'k' (column 'K'): taken as"
        " exact; name the column in the schema or mapping, error = '...', or say that there is"
        " none, error = 'none'"
    ]
    assert caught[0].filename == __file__
