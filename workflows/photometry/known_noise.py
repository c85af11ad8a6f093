"""Is the covariance of colours worth something where the noise is known? One table, printed.

    python workflows/photometry/known_noise.py [--seeds 3]

Galaxies brighter than i = 23.6, whose errors are small, are learned from and tested; the tested get
noise, independent in each band, of the size that a galaxy fainter than i = 24.3 drawn at random
has: Gaussian in magnitude, or in flux. One fit, without covariance; then the same model is told the
errors of the tested with and without it. Of the population nothing differs between the two samples.
"""

from __future__ import annotations

import argparse

import numpy as np
from samples import BANDS, FAINT, catalog, galaxies

from gpal import GPClassifier
from gpal.measurements import Measurements

PRECISE, TRAINING, TEST = 23.6, 2000, 4000
LARGEST, FAINTEST = 0.7, 90.0  # magnitudes: an error that is used, and what stands for no detection
# i, then the difference of every two neighbours
FEATURES = np.vstack([np.eye(6)[3], -np.diff(np.eye(6), axis=0)])
NAMES = catalog().measurements.names


def told(magnitude: np.ndarray, error: np.ndarray, covariance: bool) -> Measurements:
    """i and colours; V = A diag(σ²) Aᵀ."""
    V = np.einsum("ij,nj,kj->nik", FEATURES, error**2, FEATURES)
    sigma = np.sqrt(np.einsum("nii->ni", V))
    return Measurements(magnitude @ FEATURES.T, sigma, NAMES, covariance=V if covariance else None)


def with_noise(magnitude, error, sigma, kind, rng):
    """Magnitudes, errors and rows of what is still detected in every band."""
    normal = rng.normal(size=sigma.shape)
    if kind == "magnitude":
        return magnitude + sigma * normal, np.hypot(error, sigma), np.full(len(sigma), True)
    noise = 10 ** (0.4 * sigma) - 1  # 1/(S/N), as these errors are defined
    flux = 1 + noise * normal
    seen = (flux > noise / (10 ** (0.4 * LARGEST) - 1)).all(axis=1)
    flux = np.where(flux > 0, flux, 1.0)
    stated = 2.5 * np.log10(1 + noise / flux)
    return magnitude - 2.5 * np.log10(flux), np.hypot(error, stated), seen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--seeds", type=int, default=3)
    seeds = parser.parse_args().seeds
    table, y = catalog().table, galaxies().y
    magnitude = np.column_stack([np.asarray(table[f"mag_{band}"], float) for band in BANDS])
    error = np.column_stack([np.asarray(table[f"mag_err_{band}"], float) for band in BANDS])
    usable = ((magnitude < FAINTEST) & (error > 0) & (error < LARGEST)).all(axis=1)
    precise = np.flatnonzero(usable & (magnitude[:, 3] < PRECISE))
    faint = np.flatnonzero(usable & (magnitude[:, 3] > FAINT))
    print(
        "| noise in | seed | galaxies | NLL | with covariance, minus that |\n|---|---|---|---|---|"
    )
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        order = rng.permutation(precise)
        train, test = order[:TRAINING], order[TRAINING : TRAINING + TEST]
        model = GPClassifier(random_state=seed)
        model.fit(told(magnitude[train], error[train], False), y[train])
        sigma = error[rng.choice(faint, len(test))]
        for kind in ("magnitude", "flux"):
            noisy, total, seen = with_noise(magnitude[test], error[test], sigma, kind, rng)
            label = y[test][seen]
            plain, correlated = (
                -np.log(model.predict_proba(told(noisy[seen], total[seen], covariance)))[
                    np.arange(len(label)), label
                ]
                for covariance in (False, True)
            )
            d = correlated - plain
            shown = f"{d.mean():+.4f} ± {d.std() / len(d) ** 0.5:.4f}"
            print(f"| {kind} | {seed} | {len(d)} | {plain.mean():.4f} | {shown} |", flush=True)


if __name__ == "__main__":
    main()
