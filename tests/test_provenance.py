"""Provenance and all-or-nothing writing."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

import gpal
from gpal.provenance import json_safe, provenance, to_json


def test_provenance_says_what_made_a_result(monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    made = provenance({"catalog": "4fgl", "sha256": "abc"}, {"n": np.int64(3)}, 7)
    assert made["gpal"] == gpal.__version__
    assert made["date"] == "1970-01-02T00:00:00+00:00"
    assert made["catalog"]["sha256"] == "abc"
    assert made["settings"] == {"n": 3} and made["random_state"] == 7
    assert made["numpy"] == np.__version__
    assert {"python", "tensorflow", "platform"} <= made.keys()


def test_provenance_does_not_import_tensorflow():
    code = "import sys; from gpal.provenance import provenance as p; p(); "
    code += "sys.exit('tensorflow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_json_is_standard_and_complete():
    value = {"a": np.array([1.5, np.nan]), 2: (np.bool_(True), np.inf, None), "p": {"x": "é"}}
    expected = {"a": [1.5, None], "2": [True, None, None], "p": {"x": "é"}}
    assert json.loads(to_json(value)) == expected
    assert json_safe(json_safe(value)) == json_safe(value)


@pytest.mark.parametrize("epoch", ["abc", "", "9" * 30, "-" + "9" * 30, "1.5"])
def test_a_source_date_epoch_that_is_no_date_is_none(monkeypatch, epoch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", epoch)
    assert provenance()["date"] >= "2024"
