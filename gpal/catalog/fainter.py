"""Sources as they would look if they were fainter.

Labelled sources are bright, those without a class are faint. A source of significance S, seen at
S' < S, has q = S'/S, and with noise that is that of the sky, not its own,

    errors            σ' = σ / q
    values with them  x' = x + σ √(1/q² − 1) ε,   ε ~ N(0, 1), correlated as the errors are      (1)
    "in proportion"   x' = q x, a flux: its error σ stays what it is, σ/x grows by 1/q
    "significance"    x' = max(0, q x + √(1 − q²) ε), a significance of something else
    "chi-square"      x' = ν + (x − ν) q² + √(1 − q⁴) (χ²_ν − ν), a test statistic
    all others        as they are

of the values before their transform in the last three; which feature is what stands in a schema,
as `fainter` of the feature. Of fluxes and significances what is below a floor is raised to it. A
hardness ratio has no error above 1 and lies between −1 and 1, as in a catalog: σ' = min(σ/q,
max(σ, 1)), and (1) adds √(σ'² − σ²) ε. Limits stay where they are if they are exact; one with an
error, that of a band that was measured, is moved and widened by (1). The mean over ε of each is
what the source would have; its spread makes up for the noise that a brighter source lacks. S' is
drawn from the targets' significances at or below S, so that the sources look as faint as what is to
be classified. Boone (2019, AJ 158, 257) made spectra and light curves fainter in this way to train
on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from gpal.catalog.columns import numbers
from gpal.catalog.cuts import sentinels_of
from gpal.catalog.feature import Feature
from gpal.catalog.sentinels import is_sentinel
from gpal.errors import InputError
from gpal.measurements import TRANSFORMS, Measurements

if TYPE_CHECKING:
    from gpal.catalog.catalog import Catalog

__all__ = ["Fainter"]

LOGARITHMS = ("log10", "ln")
LEAST = 0.1  # of ν: a statistic that noise has taken to zero or below


@dataclass(frozen=True)
class Fainter:
    """Makes sources of a catalog look as faint as its targets.

    Attributes
    ----------
    features : mapping of str to Feature
        How each is made.
    significance : mapping of str to float
        Of every source, by its identifier.
    targets : array (k,)
        Significances to be had, sorted.

    Examples
    --------
    >>> import gpal
    >>> from gpal.catalog import Fainter
    >>> catalog = gpal.load_catalog("4fgl-dr4")
    >>> known = catalog.labelled().measurements
    >>> fainter = Fainter.of(catalog)(known, random_state=0)
    >>> flux = known.names.index("log_flux")
    >>> bool((fainter.X[:, flux] <= known.X[:, flux]).all())
    True
    """

    features: Mapping[str, Feature]
    significance: Mapping[str, float]
    targets: np.ndarray

    @classmethod
    def of(cls, catalog: Catalog) -> Fainter:
        """For the sources of a catalog and its targets.

        Raises InputError where the schema does not say which column the significance is in, or
        there is no target with one, or a feature cannot be made fainter.
        """
        schema = catalog.schema
        if not schema.significance:
            raise InputError(
                f"the schema of {schema.title or schema.name} does not say how significant a source"
                " is; name the column under 'significance'"
            )
        S = numbers(catalog.table, schema.significance)
        S[is_sentinel(S, sentinels_of(catalog.table, schema, schema.significance))] = np.nan
        known = np.isfinite(S) & (S > 0)
        targets = np.sort(S[known & catalog.is_target])
        if not len(targets):
            raise InputError(
                f"no source to classify has a value in '{schema.significance}'; sources can be made"
                " as faint as nothing"
            )
        features = {name: schema.features[name] for name in catalog.feature_names}
        for name, made in features.items():
            if made.fainter == "significance" and made.transform in LOGARITHMS and not made.floor:
                raise InputError(
                    f"feature '{name}' is a logarithm of a significance, which may be 0 where a"
                    " source is seen fainter; give it a 'floor'"
                )
        for name, errors in zip(catalog.feature_names, catalog.X_err.T, strict=True):
            noisy = (np.isfinite(errors) & (errors > 0)).any()
            if features[name].fainter in ("significance", "chi-square") and noisy:
                raise InputError(
                    f"feature '{name}' has errors, and a {features[name].fainter} has noise of 1 by"
                    " itself, however faint a source: say error = 'none'"
                )
        return cls(features, dict(zip(catalog.names[known].tolist(), S[known].tolist())), targets)

    def __call__(self, sources: Measurements, random_state: int = 0) -> Measurements:
        """The sources, each as it would look at a significance drawn from the targets'.

        Parameters
        ----------
        sources : Measurements (n, d)
            Of the catalog, by their identifiers. One without a significance, or fainter than all
            targets, stays as it is.
        random_state : int

        Returns
        -------
        Measurements (n, d)
        """
        rng = np.random.default_rng(random_state)
        q = self._drawn(sources, rng)
        X, factor = sources.X.copy(), np.repeat(1 / q[:, None], len(sources.names), axis=1)
        made = [self._made(name) for name in sources.names]
        bounded = np.array([bool(one.hardness) for one in made])
        with np.errstate(divide="ignore"):
            most = np.maximum(1.0, 1.0 / sources.X_err)  # to an error of 1
        factor[:, bounded] = np.minimum(factor, most)[:, bounded]
        scatter = self._scatter(sources, np.sqrt(factor**2 - 1), rng)
        for j, one in enumerate(made):
            if one.fainter == "in proportion":
                X[:, j], factor[:, j] = _in_proportion(one, X[:, j], q)
            elif one.fainter:
                X[:, j] = _fainter(one, X[:, j], q, rng)
            else:
                X[:, j] += scatter[:, j]
        X[:, bounded] = np.clip(X[:, bounded], -1.0, 1.0)
        covariance, limits = sources.covariance, sources.limits
        if covariance is not None:
            covariance = covariance * factor[:, :, None] * factor[:, None, :]
        if limits is not None:
            noise = np.sqrt(1 / q**2 - 1)[:, None] * limits.error * rng.normal(size=X.shape)
            limits = replace(limits, value=limits.value + noise, error=limits.error / q[:, None])
        X_err = sources.X_err * factor
        return replace(sources, X=X, X_err=X_err, covariance=covariance, limits=limits)

    def _made(self, name: str) -> Feature:
        if name not in self.features:
            raise InputError(f"no feature '{name}'; there are: {', '.join(self.features)}")
        return self.features[name]

    def _drawn(self, sources: Measurements, rng: np.random.Generator) -> np.ndarray:
        """(n,) q = S'/S."""
        assert sources.ids is not None
        S = np.array([self.significance.get(name, np.nan) for name in sources.ids.tolist()])
        fainter = np.where(np.isfinite(S), np.searchsorted(self.targets, S, side="right"), 0)
        chosen = self.targets[(rng.random(len(S)) * fainter).astype(int)]
        return np.where(fainter > 0, chosen / np.where(fainter > 0, S, 1.0), 1.0)

    def _scatter(
        self, sources: Measurements, more: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """(n, d) what equation (1) adds, `more` [n, d] in errors; none where nothing was
        measured."""
        ε = rng.normal(size=sources.X.shape)
        if sources.covariance is None:
            σ = np.where(sources.measured, sources.X_err, 0.0)
            added = σ * ε
        else:
            both = sources.measured[:, :, None] & sources.measured[:, None, :]
            values, vectors = np.linalg.eigh(np.where(both, sources.covariance, 0.0))
            added = np.einsum("nij,nj,nj->ni", vectors, np.sqrt(np.maximum(values, 0)), ε)
        return more * added


def _in_proportion(made: Feature, x: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Values (n,) of one feature after its transform, and σ'/σ (n,), of which the error before it
    stays: a ratio of its slopes, 1/q of a logarithm, 1 of the value itself."""
    _, slope = TRANSFORMS[made.transform]
    unit = made.softening or 1.0
    before = made.backward(x)
    after = q * before if made.floor is None else np.maximum(q * before, made.floor)
    with np.errstate(divide="ignore", invalid="ignore"):
        factor = slope(after / unit) / slope(before / unit)
    return made.forward(after), np.where(np.isfinite(factor), factor, 1 / q)


def _fainter(made: Feature, x: np.ndarray, q: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """(n,) values of one feature after its transform, NaN where not measured."""
    if made.fainter == "significance":
        ε = rng.normal(size=len(x))
        seen = q * made.backward(x) + np.sqrt(1 - q**2) * ε
        return made.forward(np.maximum(seen, made.floor or 0.0))
    ν = made.degrees_of_freedom
    noise = rng.chisquare(ν, size=len(x)) - ν
    seen = ν + (made.backward(x) - ν) * q**2 + np.sqrt(1 - q**4) * noise
    return made.forward(np.where(q < 1, np.maximum(seen, LEAST * ν), made.backward(x)))
