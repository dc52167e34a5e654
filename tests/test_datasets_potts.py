"""Samples of Potts models: the distribution, and what tells contacts from other pairs."""

import numpy as np
import pytest
from conftest import cases
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from oracles import assert_drawn
from sklearn_boltz.datasets import make_alignment


def distribution(alignment):
    """Probability of every state, by enumeration."""
    n_sites, q = alignment.field.shape
    states = np.indices((q,) * n_sites).reshape(n_sites, -1).T
    log_p = alignment.field[np.arange(n_sites), states].sum(axis=1)
    for i, j in alignment.contacts:
        log_p += alignment.coupling[i, j, states[:, i], states[:, j]]
    p = np.exp(log_p - log_p.max())
    return states, p / p.sum()


def mutual_information(x, y, q):
    joint = np.bincount(q * x.astype(int) + y, minlength=q * q).reshape(q, q) / len(x)
    product = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0)
    seen = joint > 0
    return np.sum(joint[seen] * np.log(joint[seen] / product[seen]))


@pytest.mark.parametrize(
    ("alphabet", "n_sites", "n_contacts"),
    [("dna", 3, 3), ("ab", 6, 7), ("abc", 4, 2), ("dna", 2, 0)],
)
def test_samples_follow_the_distribution(alphabet, n_sites, n_contacts):
    alignment = make_alignment(
        20_000, n_sites, alphabet=alphabet, n_contacts=n_contacts, n_steps=30, random_state=0
    )
    assert_drawn(alignment.codes, *distribution(alignment))
    # The test would see the lack of couplings.
    if n_contacts:
        alignment.coupling[:] = 0
        with pytest.raises(AssertionError):
            assert_drawn(alignment.codes, *distribution(alignment))


@settings(max_examples=cases(30))
@given(
    n_sites=st.integers(1, 9),
    data=st.data(),
    alphabet=st.sampled_from(["protein", "dna", "_*^", "ab"]),
    seed=st.integers(0, 2**32 - 1),
)
def test_model(n_sites, data, alphabet, seed):
    n_contacts = data.draw(st.none() | st.integers(0, n_sites * (n_sites - 1) // 2))
    alignment = make_alignment(
        5, n_sites, alphabet=alphabet, n_contacts=n_contacts, n_steps=1, random_state=seed
    )
    q = len(alignment.alphabet)
    assert alignment.codes.shape == (5, n_sites) and alignment.codes.dtype == np.int8
    assert 0 <= alignment.codes.min() and alignment.codes.max() < q
    letters = [[alignment.alphabet[code] for code in row] for row in alignment.codes]
    assert alignment.letters.tolist() == letters
    contacts = alignment.contacts.tolist()
    if n_contacts is None:
        n_contacts = min(n_sites, n_sites * (n_sites - 1) // 2)
    assert len(contacts) == n_contacts and contacts == sorted(contacts)
    assert len(set(map(tuple, contacts))) == n_contacts and all(i < j for i, j in contacts)
    coupling = alignment.coupling
    assert coupling.shape == (n_sites, n_sites, q, q) and alignment.field.shape == (n_sites, q)
    assert_array_equal(coupling, coupling.transpose(1, 0, 3, 2))
    for sums in (coupling.sum(axis=2), coupling.sum(axis=3), alignment.field.sum(axis=1)):
        assert_allclose(sums, 0, atol=1e-12)
    coupled = np.argwhere(np.triu(np.abs(coupling).max(axis=(2, 3)) > 0))
    assert coupled.tolist() == contacts


@pytest.mark.parametrize("alphabet", ["protein", "dna"])
def test_contacts_are_correlated_most(alphabet):
    alignment = make_alignment(alphabet=alphabet, random_state=0)
    n_sites, q = alignment.field.shape
    information = np.full((n_sites, n_sites), np.nan)
    for i, j in zip(*np.triu_indices(n_sites, 1), strict=True):
        x, y = alignment.codes[:, i], alignment.codes[:, j]
        information[i, j] = mutual_information(x, y, q)
    contact = np.zeros((n_sites, n_sites), dtype=bool)
    contact[tuple(alignment.contacts.T)] = True
    others = information[~contact & ~np.isnan(information)]
    assert np.median(information[contact]) > 2 * np.median(others)
    # Twice the rows times the information of independent sites is a chi-square, of few letters.
    threshold = stats.chi2.isf(1e-6 / 435, (q - 1) ** 2) / (2 * len(alignment.codes))
    if alphabet == "dna":
        assert (information[contact] > threshold).mean() > 0.9
        # Where a path of contacts leads from one site to another, they are correlated, too.
        assert (others > threshold).any()


def test_same_model_other_samples():
    first, second = (
        make_alignment(50, 8, alphabet="rna", model_state=3, random_state=seed) for seed in (0, 1)
    )
    assert_array_equal(first.coupling, second.coupling)
    assert_array_equal(first.field, second.field)
    assert (first.codes != second.codes).any()
    again = make_alignment(50, 8, alphabet="rna", model_state=3, random_state=1)
    assert_array_equal(second.codes, again.codes)
