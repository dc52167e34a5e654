"""How many functions of the package are called from `fit` to its first compiled kernel.

``python tests/calls.py SDCPRBM`` prints the calls as a tree.
"""

import sys
from pathlib import Path
from traceback import walk_tb
from unittest.mock import patch

import numpy as np

import sklearn_boltz
from private import _basis, _bernoulli, _objective, _sdcp, _tap
from sklearn_boltz import SDCPRBM, TAPRBM, FSLLDensity, FVBMPseudoLikelihood, InfiniteRBM

PACKAGE = Path(sklearn_boltz.__file__).parent
# Of each estimator, the module that calls the first kernel, and the kernel.
FITS = {
    "SDCPRBM": (SDCPRBM(8, max_iter=1, n_jobs=1, random_state=0), _sdcp, "learn_rows"),
    "TAPRBM": (TAPRBM(8, max_iter=1, n_jobs=1, random_state=0), _tap, "bernoulli_mean"),
    "InfiniteRBM": (InfiniteRBM(8, n_jobs=1, random_state=0), _bernoulli, "softplus_sums"),
    "FSLLDensity": (FSLLDensity(n_jobs=1), _basis, "transform_in_threads"),
    "FVBMPseudoLikelihood": (FVBMPseudoLikelihood(), _objective, "evaluate_fields"),
}
# These are parts of a function, and from Python 3.12 on no calls.
PARTS = {"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"}


class Reached(Exception):
    """Raised in the place of the kernel."""


def reach(*args, **kwargs):
    """The kernel: nothing is counted from here on."""
    sys.setprofile(None)
    raise Reached


def calls_to_kernel(name, n_columns=8):
    """Calls of the package's own functions from `fit` on bits to the first kernel, and files.

    Of each call, how many of the others it is in, and file and function. The files are those of
    functions that have not come to their end when the kernel is reached.
    """
    estimator, module, kernel = FITS[name]
    X = (np.random.default_rng(0).random((200, n_columns)) < 0.4).astype(float)
    calls, frames = [], set()

    def is_ours(frame):
        code = frame.f_code
        return code.co_filename.startswith(str(PACKAGE)) and code.co_name not in PARTS

    def look(frame, event, arg):
        # A generator has the same frame each time that it goes on. Frames that are kept differ.
        if event != "call" or not is_ours(frame) or frame in frames:
            return
        frames.add(frame)
        depth, outer = 0, frame.f_back
        while outer is not None:
            depth, outer = depth + is_ours(outer), outer.f_back
        calls.append((depth, f"{path_of(frame)}: {frame.f_code.co_qualname}"))

    def path_of(frame):
        return str(Path(frame.f_code.co_filename).relative_to(PACKAGE))

    with patch.object(module, kernel, reach):
        sys.setprofile(look)
        try:
            estimator.fit(X)
        except Reached as reached:
            stack = [frame for frame, _ in walk_tb(reached.__traceback__) if is_ours(frame)]
        finally:
            sys.setprofile(None)
    return calls, {path_of(frame) for frame in stack}


if __name__ == "__main__":
    for its_name in sys.argv[1:] or FITS:
        calls_to_kernel(its_name)  # which fills caches
        found, on_stack = calls_to_kernel(its_name)
        print(f"{its_name}: {len(found)} calls; on the stack: {', '.join(sorted(on_stack))}")
        if len(sys.argv) > 1:
            print("\n".join("  " * level + call for level, call in found))
