"""Extension modules; all else is in pyproject.toml."""

import os
import sys
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

PACKAGE = Path("sklearn_boltz")
HEADERS = [path.as_posix() for path in [*PACKAGE.rglob("*.h"), *PACKAGE.rglob("*.pxd")]]
DIRECTIVES = {
    "language_level": 3,
    "boundscheck": False,
    "wraparound": False,
    "initializedcheck": False,
    "cdivision": True,
    "freethreading_compatible": True,
}
# No -march=native: the wheels must run on any processor of the architecture.
# Wider instruction sets are chosen at run time, see sklearn_boltz/_simd.h.
# Nobody traps floating-point exceptions; with traps, GCC leaves conditional loops unvectorised.
# MSVC knows C's `restrict` only with /std:c11.
MSVC = ["/O2", "/std:c11"]
GCC = ["-O3", "-g0", "-fno-math-errno", "-fno-trapping-math", "-Wno-psabi"]
FLAGS = MSVC if sys.platform == "win32" else GCC
# For example "-fsanitize=address,undefined -g", or "-DSKLEARN_BOLTZ_PORTABLE".
EXTRA = os.environ.get("SKLEARN_BOLTZ_CFLAGS", "").split()


def extension(path):
    return Extension(
        ".".join(path.with_suffix("").parts),
        [path.as_posix()],
        depends=HEADERS,
        include_dirs=[PACKAGE.as_posix()],
        extra_compile_args=FLAGS + EXTRA,
        extra_link_args=[flag for flag in EXTRA if flag.startswith("-fsanitize")],
    )


setup(
    ext_modules=cythonize(
        [extension(path) for path in sorted(PACKAGE.rglob("*.pyx"))],
        compiler_directives=DIRECTIVES,
    )
)
