"""Rounding as on other processors: of our kernels, by their registers, and of all other sums."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from networks import spins
from numpy.testing import assert_allclose, assert_array_equal
from rounding import another_processor

import sklearn_boltz
from private import bernoulli_mean, register_bytes
from sklearn_boltz import FVBMPseudoLikelihood

# Of kernels alone: most of the time would be spent in importing the libraries of the others.
KERNELS = """
import sys, types
import numpy as np
for name in ("sklearn_boltz", "sklearn_boltz.numerics", "sklearn_boltz.units"):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = ["/".join([sys.argv[1], *name.split(".")[1:]])]
from sklearn_boltz.numerics._random_kernel import register_bytes
from sklearn_boltz.units._bernoulli_kernel import bernoulli_mean
x = np.linspace(-3, 3, 200).reshape(2, 100)
bernoulli_mean(x, np.zeros(100))
print(register_bytes(), *x.ravel().tolist())
"""


@pytest.mark.parametrize(("asked", "most"), [("16", 16), ("32", 32)])
def test_an_environment_variable_narrows_the_registers_of_kernels(asked, most, monkeypatch):
    monkeypatch.setenv("SKLEARN_BOLTZ_REGISTER_BYTES", asked)
    command = [sys.executable, "-c", KERNELS, Path(sklearn_boltz.__file__).parent]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    width, *found = told.split()
    x = np.linspace(-3, 3, 200).reshape(2, 100)
    bernoulli_mean(x, np.zeros(100))
    assert_allclose(np.array(found, dtype=float), x.ravel(), rtol=1e-14)
    assert min(most, register_bytes()) <= int(width) <= most


def test_on_another_processor_sums_are_rounded_otherwise():
    """In all of the package, which is as before afterwards."""
    X, model = spins(200, 5, 0), FVBMPseudoLikelihood(alpha=0.1)
    here = model.fit(X).coupling_
    found = []
    for order in (1, 2):
        with another_processor(order):
            found.append(FVBMPseudoLikelihood(alpha=0.1).fit(X).coupling_)
    assert not any(np.array_equal(one, here) for one in found)
    assert not np.array_equal(*found)
    assert_allclose(found, [here, here], atol=1e-12)
    assert_array_equal(FVBMPseudoLikelihood(alpha=0.1).fit(X).coupling_, here)
