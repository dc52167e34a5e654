"""Run the numerical tests as they would run on other processors: `make test-processors`.

A library is bound to its processor when it is loaded, so that each of them has a process of its
own. `python tests/processors.py COMMIT` takes one of them, chosen by the commit, and tests of a
minute, as CI does.
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
# Fits that are compared with other fits and with oracles, and what these are made of: in a minute,
# and the others. What the guide prints is to be the same on all of them.
QUICK = [
    "contract/test_same_table.py", "test_processors.py", "test_fvbm_solvers.py",
    "test_fvbm_missing.py", "test_fvbm_kernels.py", "test_rbm_kernels.py", "test_hadamard.py",
    "test_fsll.py",
]  # fmt: skip
NUMERICAL = [
    *QUICK, "contract/test_enumeration.py", "test_batches.py",
    "test_fsll_missing.py", "test_fvbm.py", "test_fvbm_bootstrap.py", "test_fvbm_categorical.py",
    "test_fvbm_higher_order.py", "test_fvbm_inference.py", "test_fvbm_likelihood.py",
    "test_fvbm_models.py", "test_fvbm_ordered.py", "test_fvbm_penalty.py",
    "test_fvbm_separation.py", "test_fvbm_sparse.py", "test_joint_network.py", "test_location.py",
    "test_physics.py", "test_rbm_model.py", "test_rbm_sdcp.py", "test_statistics_graphs.py",
    "test_tap.py", "test_tap_estimators.py", "test_units.py",
    "../README.md", "../doc/index.rst", "../doc/user_guide",
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
    "other sums": Processor(order="9"),
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
    # Threads of BLAS wait by spinning: where there are more than processors, tests take minutes.
    n_processes = max((os.cpu_count() or 1) // PROCESSORS[name].n_threads, 1)
    command = [sys.executable, "-m", "pytest", "-q", f"-n{n_processes}", "--dist", "loadfile"]
    return not subprocess.run([*command, *files], env=environment, cwd=TESTS).returncode


def main(commit=None):
    """Run all that this machine can be, or the one that a commit chooses."""
    names = [name for name, one in PROCESSORS.items() if one.width <= register_bytes()]
    if "OPENBLAS_CORETYPE" in os.environ:
        print(f"OPENBLAS_CORETYPE={os.environ['OPENBLAS_CORETYPE']} is set, and left alone.")
    if commit:
        names = [names[int(commit, 16) % len(names)]]
    failed = [name for name in names if not run(name, QUICK if commit else NUMERICAL)]
    sys.exit(f"failed: {', '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
