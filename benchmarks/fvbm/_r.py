"""Packages of R beside Python."""

import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from _common import MissingData

CODE = """
x <- as.matrix(read.csv("{path}", header = FALSE))
start <- proc.time()
found <- {expression}
seconds <- (proc.time() - start)[["user.self"]]
write(c(seconds, found), "{path}", ncolumns = 1)
"""


def find_r(*packages):
    """Rscript, and the versions of packages that it must have."""
    rscript = shutil.which("Rscript")
    versions = [f'packageVersion("{name}")' for name in packages]
    code = f"cat(sapply(list(R.version.string, {', '.join(versions)}), as.character), sep='; ')"
    if rscript is None:
        raise MissingData("there is no Rscript")
    ran = subprocess.run([rscript, "-e", code], capture_output=True, text=True, check=False)
    if ran.returncode:
        raise MissingData(f"R lacks one of {', '.join(packages)}")
    first, *rest = ran.stdout.split("; ")
    named = (f"{name} {version}" for name, version in zip(packages, rest, strict=True))
    return rscript, ", ".join([first, *named])


def by_r(rscript, expression, X):
    """What R finds of a table `x`, a vector, and the seconds of its processor."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table"
        np.savetxt(path, X, fmt="%.10g", delimiter=",")
        code = CODE.format(path=path, expression=expression)
        subprocess.run([rscript, "-e", code], capture_output=True, check=True)
        seconds, *found = np.genfromtxt(path)
    return np.array(found), seconds
