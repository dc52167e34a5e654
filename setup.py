"""Extension modules, and the page of the package on an index; all else is in pyproject.toml."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import Cython
from Cython.Build import cythonize
from setuptools import Extension, setup

PACKAGE = Path("sklearn_boltz")
NUMERICS = PACKAGE / "numerics"
# Cython's own code for memory views, compiled once instead of into each module: half of the time.
SHARED = "sklearn_boltz._cyutility"
DIRECTIVES = {
    "language_level": 3,
    "boundscheck": False,
    "wraparound": False,
    "initializedcheck": False,
    "cdivision": True,
    "freethreading_compatible": True,
}
# No -march=native: the wheels must run on any processor of the architecture.
# Wider instruction sets are chosen at run time, see sklearn_boltz/numerics/_simd.h.
# Nobody traps floating-point exceptions; with traps, GCC leaves conditional loops unvectorised.
# MSVC knows C's `restrict` only with /std:c11.
MSVC = ["/O2", "/std:c11"]
GCC = ["-O3", "-g0", "-fno-math-errno", "-fno-trapping-math", "-Wno-psabi"]
FLAGS = MSVC if sys.platform == "win32" else GCC
# For example "-fsanitize=address,undefined -g", or "-DSKLEARN_BOLTZ_PORTABLE".
EXTRA = os.environ.get("SKLEARN_BOLTZ_CFLAGS", "").split()


def headers(path):
    """The headers that a file includes, and those that these include."""
    found = set()
    for name in re.findall(r'"([\w/]+\.h)"|from sklearn_boltz\.(\S+) cimport', path.read_text()):
        name = name[0] or name[1].replace(".", "/") + ".pxd"
        places = [folder / name for folder in (path.parent, NUMERICS, PACKAGE)]
        for header in [place for place in places if place.exists()][:1]:
            found |= {header.as_posix()} | headers(header)
    return found


def extension(name, path):
    return Extension(
        name,
        [path.as_posix()],
        depends=sorted(headers(path)),
        include_dirs=[PACKAGE.as_posix(), NUMERICS.as_posix()],
        extra_compile_args=FLAGS + EXTRA,
        extra_link_args=[flag for flag in EXTRA if flag.startswith("-fsanitize")],
    )


def extensions():
    """All modules; what another version of Cython has left is made anew."""
    shared = Path(*SHARED.split(".")).with_suffix(".c")
    stale = not shared.exists() or Cython.__version__ not in shared.open().readline()
    if stale:
        command = [sys.executable, "-m", "cython", f"--generate-shared={shared}"]
        subprocess.run([*command, "-X", "freethreading_compatible=True"], check=True)
    kernels = cythonize(
        [extension(".".join(path.with_suffix("").parts), path) for path in KERNELS],
        compiler_directives=DIRECTIVES,
        shared_utility_qualified_name=SHARED,
        force=stale,
    )
    return [Extension(SHARED, [shared.as_posix()], extra_compile_args=FLAGS + EXTRA), *kernels]


def page():
    """The README with absolute links, and the addresses, once pyproject.toml has a repository."""
    configuration = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))
    repository = configuration["tool"]["sklearn_boltz"]["repository"]
    tag = f"v{configuration['project']['version']}"
    readme = Path("README.md").read_text(encoding="utf-8")
    urls = {}
    if repository:
        # Pictures are read as they are; other files have a page of their own.
        readme = re.sub(r"(!\[[^]]*\]\()(?!https:)", rf"\1{repository}/raw/{tag}/", readme)
        readme = re.sub(r"(\]\()(?!https:)", rf"\1{repository}/blob/{tag}/", readme)
        urls = {
            "Repository": repository,
            "Documentation": f"{repository}/tree/{tag}#documentation-development",
            "Issues": f"{repository}/issues",
            "Changelog": f"{repository}/tree/{tag}/doc/whats_new",
        }
    return {
        "long_description": re.sub(r" ?<!--.*?-->", "", readme),
        "long_description_content_type": "text/markdown",
        "project_urls": urls,
    }


KERNELS = sorted(PACKAGE.rglob("*.pyx"))
# The Makefile installs the package without its kernels, and compiles those that have changed.
setup(
    ext_modules=[] if "SKLEARN_BOLTZ_NO_KERNELS" in os.environ else extensions(),
    **page(),
    options={"build_ext": {"parallel": os.cpu_count() or 1}},
)
