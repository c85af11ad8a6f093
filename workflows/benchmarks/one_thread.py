"""Imported first, it gives the process one thread and no GPU: libraries read this as they load."""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
from studies import ONE_THREAD

os.environ.update(ONE_THREAD)
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["CUDA_VISIBLE_DEVICES"] = ""
