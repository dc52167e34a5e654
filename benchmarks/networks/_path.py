"""Lets the scripts of this folder import what lies in ``benchmarks``, wherever they are run."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
