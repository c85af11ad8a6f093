"""Fits by a Dask cluster, of which workers are killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from gpal import GPClassifier, InputError
from gpal.engines import Dask, Here, as_engine, local_client
from gpal.model.partitions import opened

pytest.importorskip("distributed", reason="pip install 'gpal[dask]'")

OPTIONS = {"n_inducing": 8, "max_rounds": 1, "learn_from": 200, "input_noise": "first_order"}


def sources(number, size=120, marker=None):
    """Partition `number`; with a marker that is not there yet, the process is killed instead."""
    if marker is not None and not Path(marker).exists():
        Path(marker).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    rng = np.random.default_rng(number)
    y = rng.integers(3, size=size)
    X_err = rng.uniform(0.05, 0.4, size=(size, 2))
    X = np.stack([np.cos(2 * y), np.sin(2 * y)], axis=1)
    return X + rng.normal(size=(size, 2)) * np.hypot(0.4, X_err), y, X_err


@pytest.fixture(scope="module")
def client():
    with local_client(workers=2) as client:
        yield client


def test_what_is_an_engine(client):
    assert isinstance(as_engine(None), Here)
    assert isinstance(as_engine(client), Dask)
    assert as_engine(Here()).map(pow, [2, 3], 2).__next__() == 4
    assert list(Dask(client).map(pow_of, range(20), shared=2)) == [n**2 for n in range(20)]


def test_workers_do_not_keep_where_they_were(client):
    """Dask's profile of every second, which grows as long as a worker lives."""

    def callbacks(dask_worker):
        return sorted(dask_worker.periodic_callbacks)

    for names in client.run(callbacks).values():
        assert names and not any("profile" in name for name in names)


def pow_of(part, shared):
    return part**shared


@pytest.mark.slow
def test_a_fit_by_dask_is_that_of_one_process_and_survives_a_worker(client, tmp_path):
    parts = [partial(sources, number) for number in range(6)]
    X, y, X_err = (np.concatenate(all_of) for all_of in zip(*(part() for part in parts)))
    here = GPClassifier(**OPTIONS).fit(X, y, X_err)
    there = GPClassifier(**OPTIONS).fit_batches(parts, engine=client)
    marker = tmp_path / "killed"
    parts[4] = partial(sources, 4, marker=str(marker))
    again = GPClassifier(**OPTIONS).fit_batches(parts, engine=client)
    assert marker.exists()
    want = here.predict_proba(X, X_err)
    np.testing.assert_allclose(there.predict_proba(X, X_err), want, rtol=0, atol=1e-8)
    np.testing.assert_array_equal(again.predict_proba(X, X_err), there.predict_proba(X, X_err))


@pytest.mark.slow
def test_a_worker_is_killed_in_the_middle_of_a_sweep(client, tmp_path):
    """The third call of a partition is the first sweep."""
    parts = [partial(sources, number) for number in range(4)]
    want = GPClassifier(**OPTIONS).fit_batches(parts, engine=client).predict_proba(*probe())
    parts[2] = partial(killed_at, 2, 4, str(tmp_path))
    got = GPClassifier(**OPTIONS).fit_batches(parts, engine=client).predict_proba(*probe())
    assert len(list(tmp_path.iterdir())) > 4
    np.testing.assert_array_equal(got, want)


def killed_at(number, call, folder):
    calls = len(list(Path(folder).iterdir())) + 1
    Path(folder, str(calls)).touch()
    if calls == call:
        os.kill(os.getpid(), signal.SIGKILL)
    return sources(number)


def probe():
    X, _, X_err = sources(99)
    return X, X_err


def test_what_a_partition_raises_is_raised(client):
    with pytest.raises(FileNotFoundError, match=r"lost\.npz"):
        GPClassifier(**OPTIONS).fit_batches([partial(np.load, "/nowhere/lost.npz")], engine=client)


COMMANDS = """
import sys
import gpal.engines
from gpal.cli import main

for line in (
    "--help",
    "classify --help",
    "catalogs",
    "schema check 4fgl-dr4",
    "classify small.csv --schema small.toml --folds 2 --jobs 1 --out out",
    "predict out/model.npz small.csv --out again.csv",
):
    sys.argv = ["gpal", *line.split()]
    try:
        main()
    except SystemExit as end:
        assert not end.code, line
    assert not {"dask", "distributed", "lsdb", "hats"} & set(sys.modules), line
"""


@pytest.mark.slow
def test_nothing_imports_dask_that_needs_no_cluster(tmp_path):
    """Neither gpal nor what it stands on, where Dask is installed."""
    rng = np.random.default_rng(0)
    rows = [f"{name},{x}" for name, x in zip("ab" * 20, rng.normal(size=40), strict=True)]
    (tmp_path / "small.csv").write_text("\n".join(["class,x", *rows]))
    schema = 'class = "class"\n[classes]\ndefault = ["A", "B"]\n'
    (tmp_path / "small.toml").write_text(schema + '[features.x]\ncolumn = "x"\nerror = "none"\n')
    command = [sys.executable, "-c", COMMANDS]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "again.csv").exists()


def test_weights_in_a_partition_are_refused():
    X, y = np.random.default_rng(0).normal(size=(20, 2)), np.arange(20) % 2
    with pytest.raises(InputError, match="a batch has 5 parts"):
        opened((X, y, 0.1, None, np.ones(20)))
