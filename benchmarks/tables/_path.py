"""Lets the scripts of this folder import what lies in ``benchmarks``, wherever they are run."""

import sys
from pathlib import Path

BENCHMARKS = str(Path(__file__).resolve().parents[1])
if BENCHMARKS not in sys.path:
    sys.path.insert(0, BENCHMARKS)
