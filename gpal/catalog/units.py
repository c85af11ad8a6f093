"""Units that differ by a factor."""

from __future__ import annotations

import warnings

import numpy as np

__all__ = ["factor_between"]


def factor_between(found: str, wanted: str, power: int = 1, *, of_errors: bool = False) -> float:
    """What numbers in the unit `found` are multiplied by to be in `wanted` to the `power`.

    of_errors  they are differences: those of mag(AB) are in mag

    Raises ValueError where there is no such factor: magnitudes and dex convert to fluxes by a
    formula.
    """
    from astropy import units as u

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # units spelled in ways that astropy remarks upon
            units = u.Unit(found), u.Unit(wanted)
            if of_errors:
                units = tuple(getattr(unit, "function_unit", unit) for unit in units)
            zero, factor, twice = units[0].to(units[1] ** power, [0.0, 1.0, 2.0])
    except Exception as error:  # a unit is a formula, and fails in as many ways
        raise ValueError(str(error)) from error
    if zero != 0 or not 0 < factor < np.inf or not np.isclose(twice, 2 * factor, 1e-9, 0):
        raise ValueError(f"no factor, but 0, 1, 2 -> {zero}, {factor}, {twice}")
    return float(factor)
