"""The figures of sources: their spectra, their light curves."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogFormatterSciNotation, LogLocator, NullFormatter

from gpal.errors import InputError, shown
from gpal.plot.style import Width, canvas, drawn, given_axes, new_figure, sized_as, styled

__all__ = ["light_curve", "spectra", "spectrum"]

ROW = 3  # spectra beside each other

COLOUR = "#1c2330"
UNITS = {"erg / (s cm2)": "erg cm$^{-2}$ s$^{-1}$", "ph / (s cm2)": "ph cm$^{-2}$ s$^{-1}$"}


def spectrum(
    data: Any,
    flux: Any = None,
    errors: Any = None,
    *,
    unit: str = "erg / (s cm2)",
    ax: Axes | None = None,
    width: Width = None,
) -> Axes:
    """νFν against energy, both logarithmic; arrows are 95 % upper limits.

    Parameters
    ----------
    data : Series, or array of shape (b, 2)
        What `gpal.catalog.spectrum` returned, or the limits in energy of b bands, MeV.
    flux, errors : arrays of shape (b,) and (b, 2), optional
        νFν with its lower and upper 1-sigma errors; a lower error of NaN makes it an upper limit
        at the flux and two upper errors.
    unit : str, optional
        Of the fluxes, where they are given as an array.
    ax : Axes, optional
        To draw into.
    width : str or float, optional
        One of `gpal.plot.WIDTHS`, or inches.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import gpal
    >>> from gpal.catalog import spectrum
    >>> crab = spectrum(gpal.load_catalog("4fgl-dr4"), "4FGL J0534.5+2200")
    >>> ax = gpal.plot.spectrum(crab, width="column")
    """
    series = _series(data, flux, errors, unit)
    ax = _axes(ax, width)
    with sized_as(ax) as scale:
        ax.set(xscale="log", yscale="log", xlabel="energy (MeV)")
        if not np.isfinite(series.edges).all():
            edges = np.arange(len(series.flux))[:, None] + [0.0, 1.0]
            ax.set(xscale="linear", xlabel="band")
            middle = edges.mean(axis=1)
        else:
            edges, middle = series.edges, np.sqrt(series.edges.prod(axis=1))
        _points(ax, series, edges, middle, scale)
        _label_decades(ax)
        ax.set_ylabel(rf"$\nu F_\nu$ ({_unit(series.unit)})")
        ax.set_title(drawn(series.name, 40))
    return ax


def spectra(
    sources: Sequence[Any],
    titles: Sequence[str] | None = None,
    *,
    axes: Any = None,
    width: Width = None,
) -> np.ndarray:
    """The spectra of several sources, three in a row.

    Parameters
    ----------
    sources : sequence of Series
        What `gpal.catalog.spectrum` returned, of each.
    titles : sequence of str, optional
        In place of their names.
    axes : Axes, optional
        To draw into, as many as there are sources.
    width : str or float, optional
        One of `gpal.plot.WIDTHS`, or inches.

    Returns
    -------
    array of Axes, shape (n,)

    Examples
    --------
    >>> import gpal
    >>> from gpal.catalog import spectrum
    >>> catalog = gpal.load_catalog("4fgl-dr4")
    >>> axes = gpal.plot.spectra([spectrum(catalog, name) for name in catalog.names[:3]])
    """
    if not isinstance(sources, Sequence) or isinstance(sources, str) or not sources:
        raise InputError(
            f"a {type(sources).__name__} is no list of spectra: give what gpal.catalog.spectrum"
            " returned, of one source at least"
        )
    n = len(sources)
    if titles is not None and (isinstance(titles, str) or len(titles) != n):
        raise InputError(f"titles are {shown(repr(titles), 60)}: give one for each of {n} sources")
    if own := axes is None:
        wide, scale = canvas(width, 12.0)
        across = min(ROW, n) if wide > 8 else 1
        down = -(-n // across)
        with styled(scale):
            figure = new_figure(wide, down * 0.68 * wide / across, scale)
            panels = figure.subplots(down, across, squeeze=False).ravel()
        for spare in panels[n:]:
            spare.remove()
        axes = panels[:n]
    panels = np.array(given_axes(axes, None if own else width, n, "one for each source"))
    for k, (ax, source) in enumerate(zip(panels, sources)):
        spectrum(source, ax=ax)
        if titles is not None:
            ax.set_title(drawn(titles[k], 40))
    return panels


def light_curve(
    data: Any,
    flux: Any = None,
    errors: Any = None,
    *,
    unit: str = "ph / (s cm2)",
    ax: Axes | None = None,
    width: Width = None,
) -> Axes:
    """Flux against time; arrows are 95 % upper limits.

    Parameters
    ----------
    data : Series, or array of shape (b, 2)
        What `gpal.catalog.light_curve` returned, or the limits in time of b intervals, MJD.
    flux, errors : arrays of shape (b,) and (b, 2), optional
        As in `gpal.plot.spectrum`.
    unit : str, optional
        Of the fluxes, where they are given as an array.
    ax : Axes, optional
        To draw into.
    width : str or float, optional
        One of `gpal.plot.WIDTHS`, or inches.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import gpal
    >>> years = [[54682.7, 55045.3], [55045.3, 55410.6], [55410.6, 55775.9]]
    >>> errors = [[0.2, 0.2], [0.2, 0.3], [float("nan"), 0.4]]
    >>> ax = gpal.plot.light_curve(years, [2.1, 1.8, 0.1], errors, unit="mJy")
    """
    series = _series(data, flux, errors, unit)
    ax = _axes(ax, width)
    with sized_as(ax) as scale:
        _points(ax, series, series.edges, series.edges.mean(axis=1), scale)
        ax.set(xlabel="time (MJD)", ylabel=f"flux ({_unit(series.unit)})")
        measured = np.isfinite(series.flux) & ~series.is_limit
        if not (series.flux[measured] < 0).any():  # as noise makes a faint source
            ax.set_ylim(bottom=0)
        ax.set_title(drawn(series.name, 40))
    return ax


def _series(data: Any, flux: Any, errors: Any, unit: str) -> Any:
    """A Series as it stands, or of arrays."""
    from gpal.catalog import Series

    if isinstance(data, Series):
        series = data
    elif flux is None or errors is None:
        raise InputError(
            f"a {type(data).__name__} is no series of fluxes: give what gpal.catalog.spectrum or"
            " gpal.catalog.light_curve returned, or the intervals, the fluxes and their errors"
        )
    else:
        edges, F, sides = (np.asarray(each, dtype=float) for each in (data, flux, errors))
        series = Series("", edges, F, sides, unit)
    b = len(series.flux)
    if series.edges.shape != (b, 2) or series.errors.shape != (b, 2):
        raise InputError(
            f"{b} fluxes need intervals and errors of shape ({b}, 2), got {series.edges.shape} and"
            f" {series.errors.shape}"
        )
    return series


def _axes(ax: Axes | None, width: Width) -> Axes:
    if ax is not None:
        return given_axes(ax, width, 1, "one in all")[0]
    wide, scale = canvas(width, 6.4)
    with styled(scale):
        return new_figure(wide, 0.7 * wide, scale).add_subplot()


def _points(ax: Axes, series: Any, edges: np.ndarray, middle: np.ndarray, scale: float) -> None:
    """Points with errors and widths, arrows down from upper limits. A lower error that reaches zero
    ends at a twentieth of the flux where the axis is logarithmic, which has no zero."""
    logarithmic = ax.get_yscale() == "log"
    measured = np.isfinite(series.flux) & ~series.is_limit
    if logarithmic:
        if below := int(np.sum(measured & (series.flux < 0))):
            warnings.warn(
                f"{below} measured fluxes are below 0 and are not drawn: the axis is logarithmic",
                stacklevel=3,
            )
        measured &= series.flux > 0
    limit = series.upper_limit
    beyond = np.isfinite(limit) & (limit > 0)
    style = {"color": COLOUR, "ls": "none", "elinewidth": 1.2 * scale, "capsize": 0}
    across = np.abs(np.stack([middle - edges[:, 0], edges[:, 1] - middle]))
    errors = series.errors.T.copy()
    if logarithmic:
        errors[0] = np.minimum(errors[0], 0.95 * series.flux)
    ax.errorbar(
        middle[measured],
        series.flux[measured],
        xerr=across[:, measured],
        yerr=errors[:, measured],
        marker="o",
        ms=5 * scale,
        **style,
    )
    drop = 0.5 * limit if logarithmic else 0.12 * np.nanmax([*limit, *series.flux, 0.0])
    ax.errorbar(
        middle[beyond],
        limit[beyond],
        xerr=across[:, beyond],
        yerr=np.broadcast_to(drop, limit.shape)[beyond],
        uplims=True,
        **(style | {"capsize": 3 * scale}),
    )


def _label_decades(ax: Axes) -> None:
    """Fluxes at 1, 2 and 5 of each decade, where there are two at most: matplotlib's own labels run
    into each other there."""
    lower, upper = ax.get_ylim()
    if upper > 100.0 * lower:
        return
    ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.yaxis.set_major_formatter(LogFormatterSciNotation(minor_thresholds=(3.0, 3.0)))
    ax.yaxis.set_minor_formatter(NullFormatter())


def _unit(unit: str) -> str:
    return UNITS.get(unit) or drawn(unit, 40)
