"""Imported first, it gives the process one thread and no GPU: libraries read this as they load."""

from __future__ import annotations

import os

LIBRARIES = ("OMP", "OPENBLAS", "MKL")

os.environ.update({f"{library}_NUM_THREADS": "1" for library in LIBRARIES})
os.environ.update({f"TF_NUM_{kind}_THREADS": "1" for kind in ("INTRAOP", "INTEROP")})
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["CUDA_VISIBLE_DEVICES"] = ""
