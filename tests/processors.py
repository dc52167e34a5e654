"""Run the numerical tests as they would run on other processors: `make test-processors`.

A library is bound to its processor when it is loaded, so that each of them has a process of its
own. `python tests/processors.py COMMIT` takes one of them, chosen by the commit, as CI does.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_info

from private import register_bytes

TESTS = Path(__file__).parent
# Fits that are compared with other fits and with oracles, and what these are made of.
NUMERICAL = [
    "contract/test_same_table.py", "contract/test_enumeration.py", "test_processors.py",
    "test_fvbm_*.py", "test_fsll*.py", "test_batches.py", "test_completion.py",
    "test_hadamard.py", "test_joint_network.py", "test_location.py", "test_physics.py",
    "test_rbm_kernels.py", "test_rbm_model.py", "test_rbm_sdcp.py", "test_tap*.py",
    "test_units.py",
]  # fmt: skip


class Processor(NamedTuple):
    """What computes otherwise there.

    `width`, in bytes, is that of the registers that our kernels, NumPy and the C library use, 0 of
    all there are; `core` is whose kernels OpenBLAS takes, on how many threads; `order` is that of
    `rounding.another_processor`.
    """

    width: int = 0
    core: str = ""
    n_threads: int = 1
    order: str = ""

    def environment(self):
        """Variables, of which those that the machine has set are left as they are."""
        features, width = np._core._multiarray_umath, self.width or 64
        wider = [
            name for name in features.__cpu_dispatch__
            if features.__cpu_features__[name]
            and (width < 32 or width < 64 and name.startswith(("AVX512", "X86_V4")))
        ]  # fmt: skip
        threads = str(self.n_threads)
        found = {
            "SKLEARN_BOLTZ_REGISTER_BYTES": str(width),
            "NPY_DISABLE_CPU_FEATURES": ",".join(wider),
            "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA" if width < 32 else "",
            "OPENBLAS_CORETYPE": self.core,
            "OMP_NUM_THREADS": threads,
            "OPENBLAS_NUM_THREADS": threads,
            "SKLEARN_BOLTZ_ROUNDING": self.order,
        }
        return {name: value for name, value in found.items() if value} | dict(os.environ)


PROCESSORS = {
    "SSE2, Prescott": Processor(16, "Prescott"),
    "AVX2, Haswell": Processor(32, "Haswell", n_threads=2),
    "AVX2, Zen": Processor(32, "Zen"),
    "AVX-512, SkylakeX": Processor(64, "SkylakeX", n_threads=2),
    "other sums": Processor(order="11"),
}


def tell():
    """Of this process, what computes."""
    cores = {pool["architecture"] for pool in threadpool_info() if "architecture" in pool}
    threads = {pool["num_threads"] for pool in threadpool_info()}
    return f"registers of {register_bytes()} bytes, BLAS {cores}, threads {threads}"


def run(name, files):
    """Run the tests; -> whether they pass."""
    environment = PROCESSORS[name].environment()
    told = subprocess.run(
        [sys.executable, "-c", "import processors; print(processors.tell())"], env=environment,
        cwd=TESTS, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    print(f"== {name}: {told}", end="", flush=True)
    command = [sys.executable, "-m", "pytest", "-q", "-n", "auto", "--dist", "loadfile", *files]
    return not subprocess.run(command, env=environment, check=False).returncode


def main(commit=None):
    """Run all that this machine can be, or the one that a commit chooses."""
    names = [name for name, one in PROCESSORS.items() if one.width <= register_bytes()]
    if "OPENBLAS_CORETYPE" in os.environ:
        print(f"OPENBLAS_CORETYPE={os.environ['OPENBLAS_CORETYPE']} is set, and left alone.")
    files = [str(path) for pattern in NUMERICAL for path in sorted(TESTS.glob(pattern))]
    if commit:
        names = [names[int(commit, 16) % len(names)]]
    failed = [name for name in names if not run(name, files)]
    sys.exit(f"failed: {', '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
