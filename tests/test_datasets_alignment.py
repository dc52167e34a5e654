"""Alignments: files read, letter by letter, and errors that say where."""

import bz2
import gzip
import lzma
from importlib import import_module
from io import BytesIO, StringIO

import numpy as np
import pandas as pd
import pytest
from conftest import cases
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_array_equal

from sklearn_boltz.datasets import load_sam_riboswitch, read_alignment

ALPHABETS = {
    "protein": "ACDEFGHIKLMNPQRSTVWY",
    "dna": "ACGT",
    "rna": "ACGU",
    "_*^": "_*^",
    "ab.": "ab.",
}


def fasta(sequences, names=None, width=None, end="\n"):
    """The text of a file."""
    lines = []
    for k, sequence in enumerate(sequences):
        lines.append(">" + (names[k] if names else f"s{k}"))
        step = width or max(len(sequence), 1)
        lines += [sequence[i : i + step] for i in range(0, len(sequence), step)]
    return end.join(lines) + end


def read(*sequences, names=None, **options):
    return read_alignment(StringIO(fasta(sequences, names)), **options)


# Control characters end lines; spaces that ASCII does not have are kept.
NAMES = st.text(st.characters(codec="utf-8", exclude_categories=("C",)), max_size=9).map(
    lambda name: name.strip(" ")
)


@settings(max_examples=cases(100))
@given(data=st.data(), alphabet=st.sampled_from(sorted(ALPHABETS)))
def test_codes_come_back(data, alphabet):
    letters = ALPHABETS[alphabet]
    states = letters if alphabet not in ("protein", "dna", "rna") else "-" + letters
    shape = data.draw(st.tuples(st.integers(1, 6), st.integers(1, 30)))
    codes = data.draw(hnp.arrays(np.int8, shape, elements=st.integers(0, len(states) - 1)))
    names = data.draw(st.lists(NAMES, min_size=shape[0], max_size=shape[0]))
    sequences = ["".join(states[c] for c in row) for row in codes]
    text = fasta(
        sequences, names, data.draw(st.none() | st.integers(1, 9)),
        data.draw(st.sampled_from(["\n", "\r\n"])),
    )  # fmt: skip
    alignment = read_alignment(BytesIO(text.encode()), alphabet=alphabet)
    assert_array_equal(alignment.codes, codes)
    assert alignment.codes.dtype == np.int8
    assert alignment.alphabet == states
    assert alignment.names.tolist() == names
    assert ["".join(row) for row in alignment.letters] == sequences
    assert_array_equal(alignment.rows, np.arange(shape[0]))
    assert_array_equal(alignment.columns, np.arange(shape[1]))
    assert_array_equal(alignment.positions, np.arange(1, shape[1] + 1))


@st.composite
def a2m(draw):
    """Match columns of each row, and what is inserted after each of them."""
    n_rows, n_columns = draw(st.integers(1, 5)), draw(st.integers(1, 8))
    row = st.text("-ACDEFGHIKLMNPQRSTVWYX", min_size=n_columns, max_size=n_columns)
    matches = draw(st.lists(row, min_size=n_rows, max_size=n_rows))
    inserted = [
        draw(st.lists(st.text("acdx", max_size=2), min_size=n_rows, max_size=n_rows))
        for _ in range(n_columns)
    ]
    return matches, inserted


def with_insertions(matches, inserted, dots):
    rows = [""] * len(matches)
    for j, column in enumerate(inserted):
        width = max(map(len, column)) if dots else 0
        for k, text in enumerate(column):
            rows[k] += matches[k][j] + text.ljust(width, ".")
    return rows


@settings(max_examples=cases(100))
@given(case=a2m())
def test_insertions_are_left_out(case):
    matches, inserted = case
    if not any(c.isupper() for row in matches for c in row):
        matches[0] = "M" + matches[0][1:]
    plain = read(*matches, alphabet="protein")
    dotted, short = (
        read(*with_insertions(matches, inserted, dots), alphabet="protein")
        for dots in (True, False)
    )
    for other in (dotted, short):
        assert_array_equal(other.codes, plain.codes)
        assert_array_equal(other.letters, plain.letters)
        assert_array_equal(other.positions, plain.positions)
    widths = [1 + max(map(len, column)) for column in inserted]
    assert_array_equal(dotted.columns, np.cumsum([0, *widths[:-1]]))


@settings(max_examples=cases(100))
@given(case=a2m(), start=st.integers(1, 500), data=st.data())
def test_focus_has_the_columns_of_its_residues(case, start, data):
    matches, inserted = case
    focus = data.draw(st.integers(0, len(matches) - 1))
    matches[focus] = "M" + matches[focus][1:]
    columns = [j for j, letter in enumerate(matches[focus]) if letter != "-"]
    plain = read(*matches, alphabet="protein")
    # A residue's number counts the insertions before it.
    before = np.cumsum([0] + [len(column[focus]) for column in inserted])[:-1]
    n_before = [sum(letter != "-" for letter in matches[focus][:j]) for j in columns]
    names = [f"s{k}" for k in range(len(matches))]
    names[focus] = f"wild/{start}-{start + 999} of a protein"
    for dots in (True, False):
        rows = with_insertions(matches, inserted, dots)
        for which in (focus, "wild", names[focus], names[focus].split()[0]):
            alignment = read(*rows, names=names, focus=which, alphabet="protein")
            assert_array_equal(alignment.codes, plain.codes[:, columns])
            assert_array_equal(alignment.positions, start + before[columns] + n_before)


def test_focus_without_numbers_and_on_the_other_strand():
    assert read("A-CG", focus="s0", alphabet="dna").positions.tolist() == [1, 2, 3]
    alignment = read("A-CG", "CCCC", names=["x/90-88", "y"], focus="x", alphabet="dna")
    assert alignment.positions.tolist() == [90, 89, 88]
    assert alignment.columns.tolist() == [0, 2, 3]


def test_gaps_as_missing_cells():
    alignment = read("A-", "-C", alphabet="dna", gaps="missing")
    assert alignment.alphabet == "ACGT"
    assert_array_equal(alignment.codes, [[0, -1], [-1, 1]])
    assert alignment.letters.tolist() == [["A", "-"], ["-", "C"]]
    own = read("A-", "-C", alphabet="AC-", gaps="missing")
    assert own.alphabet == "AC" and own.codes.tolist() == [[0, -1], [-1, 1]]


def test_unknown_letters():
    sequences = ["MKV", "MXV", "BKV"]
    unknown = read(*sequences, alphabet="protein").codes == -1
    assert unknown.tolist() == [[0, 0, 0], [0, 1, 0], [1, 0, 0]]
    dropped = read(*sequences, unknown="drop", names=["a", "b", "c"], alphabet="protein")
    assert dropped.codes.tolist() == [[11, 9, 18]]
    assert dropped.names.tolist() == ["a"] and dropped.rows.tolist() == [0]
    # A gap that is a missing cell is not an unknown letter.
    assert len(read("MK-", "MXV", unknown="drop", gaps="missing").codes) == 1
    # Nor does an insertion count, or a letter that an alphabet of one's own has.
    assert read("MKxV", "MK.V", unknown="error").codes.shape == (2, 3)
    assert read("AX", "XA", alphabet="AX", unknown="error").codes.tolist() == [[0, 1], [1, 0]]
    assert read("AX", "BA", alphabet="AB").codes.tolist() == [[0, -1], [1, 0]]


def drawn(letters, n_rows=20, n_columns=30, seed=0):
    """Sequences of letters, all of which occur."""
    rng = np.random.default_rng(seed)
    cells = rng.choice(list(letters), (n_rows, n_columns))
    cells.flat[: len(letters)] = list(letters)
    return ["".join(row) for row in cells]


@pytest.mark.parametrize("kind", ["protein", "dna", "rna"])
@pytest.mark.parametrize("gaps", ["state", "missing"])
@pytest.mark.parametrize("small", [False, True])
def test_the_alphabet_is_told_by_the_letters(kind, gaps, small):
    sequences = drawn("-" + ALPHABETS[kind] + "X" + ("N" if kind != "protein" else ""))
    if small:
        sequences = [sequence.lower() for sequence in sequences]
    found, told = (read(*sequences, gaps=gaps, alphabet=name) for name in ("auto", kind))
    assert found.alphabet == told.alphabet == ("-" if gaps == "state" else "") + ALPHABETS[kind]
    assert_array_equal(found.codes, told.codes)


def test_many_letters_for_rare_residues_are_of_another_alphabet():
    # Three letters of a hundred are too many, two are not, and letters for any residue never are.
    many, few, any_letter = ("ACGT" * 24 + end for end in ("RRYA", "RYAA", "NNXX"))
    with pytest.raises(ValueError, match="'dna': 'R' 2.0%, 'Y' 1.0% of all .*alphabet='dna'"):
        read(many)
    assert (read(many, alphabet="dna").codes == -1).sum() == 3
    assert (read(few).codes == -1).sum() == 2
    assert (read(any_letter).codes == -1).sum() == 4


def test_letters_of_either_kind_of_nucleotides_are_the_same_bases():
    sequences = "ACGT", "ACGU", "-CUT"
    found = {name: read(*sequences, alphabet=name) for name in ("auto", "dna", "rna")}
    assert found["dna"].alphabet == found["auto"].alphabet == "-ACGT"
    for alignment in found.values():
        assert alignment.codes.tolist() == [[1, 2, 3, 4], [1, 2, 3, 4], [0, 2, 4, 4]]
    assert found["rna"].alphabet == "-ACGU" and found["rna"].letters[0, 3] == "T"


@pytest.mark.parametrize("odd", [0, 2])
def test_the_sequence_that_is_to_be_left_out_is_the_odd_one(odd):
    sequences = ["MKV", "MKA", "M-A", "MRA"]
    sequences[odd] = "MK"
    match = rf"'s{odd}' \(number {odd}\) has a length of 2.* 3 of 4 .* have 3. .* leave out this"
    with pytest.raises(ValueError, match=match):
        read(*sequences)
    assert read(*np.delete(sequences, odd)).codes.shape == (3, 3)


@pytest.mark.parametrize("module", ["gzip", "bz2", "lzma"])
@pytest.mark.parametrize("share", [0.6, 0.99])
def test_files_that_are_cut_off_are_named(module, share, tmp_path):
    path = tmp_path / "family.fasta"
    content = import_module(module).compress(fasta(["MKVA"] * 50).encode())
    path.write_bytes(content[: int(share * len(content))])
    for source in (str(path), path):
        with pytest.raises(ValueError, match=rf"{path}' is cut off or damaged .* fetch it again"):
            read_alignment(source)
    with path.open("rb") as file, pytest.raises(ValueError, match=r"family.fasta' is cut off"):
        read_alignment(file)


def test_a_last_sequence_that_is_too_short_tells_of_a_file_that_is_cut_off():
    with pytest.raises(ValueError, match=r"'s2' \(number 2\) has a length of 2.*may be cut off"):
        read("MKV", "MKA", "MK")


@pytest.mark.parametrize(
    "sequences, given, remedy, followed",
    [
        (["MKVE"], {"alphabet": "dna"}, "looks like alphabet='protein'", {"alphabet": "protein"}),
        (["MKVE"], {"alphabet": "MKV-"}, "looks like alphabet='protein'", {"alphabet": "protein"}),
        (["M1-"], {}, "the string of all letters of the file", {"alphabet": "M1-"}),
        (["ab-"], {"alphabet": "ab"}, "add '-' to it, or", {"alphabet": "ab-"}),
        (
            ["ab-"],
            {"alphabet": "ab"},
            "or set gaps='missing'",
            {"alphabet": "ab", "gaps": "missing"},
        ),
        (["MX", "MK"], {"unknown": "error"}, "unknown='missing' makes", {"unknown": "missing"}),
        (["MX", "MK"], {"unknown": "error"}, "unknown='drop' drops", {"unknown": "drop"}),
    ],
)
def test_what_is_said_of_a_letter_helps(sequences, given, remedy, followed):
    with pytest.raises(ValueError, match=remedy):
        read(*sequences, **given)
    assert read(*sequences, **followed).codes.size


def test_frame():
    alignment = read("MK-V", "XKVV", names=["a/5-7", "b"], focus="a", as_frame=True)
    frame = alignment.frame
    assert frame.columns.tolist() == ["M5", "K6", "V7"] and frame.index.tolist() == ["a/5-7", "b"]
    assert frame["M5"].cat.categories.tolist() == list("-ACDEFGHIKLMNPQRSTVWY")
    assert frame["M5"].tolist()[0] == "M" and pd.isna(frame["M5"].iloc[1])
    codes = np.column_stack([frame[name].cat.codes for name in frame])
    assert_array_equal(codes, alignment.codes)
    plain = read("AC-", "ACG", alphabet="dna", as_frame=True, gaps="missing").frame
    assert plain.columns.tolist() == ["1", "2", "3"] and pd.isna(plain.loc["s0", "3"])
    assert "frame" not in read("AC")


TEXT = fasta(["ACGT", "AC-T"], ["a", "b"])


@pytest.mark.parametrize("compress", [bytes, gzip.compress, bz2.compress, lzma.compress])
def test_files_and_compression(compress, tmp_path):
    content = compress(TEXT.encode())
    path = tmp_path / "alignment"
    path.write_bytes(content)
    with open(path, "rb") as file:
        for source in (path, str(path), file, BytesIO(content)):
            codes = read_alignment(source, alphabet="dna").codes
            assert codes.tolist() == [[1, 2, 3, 4], [1, 2, 0, 4]]


@pytest.mark.parametrize(
    "text",
    [
        TEXT.rstrip("\n"),
        "\n\n" + TEXT + "\n\n",
        TEXT.replace("AC", "A C\t"),
        TEXT.replace("\n", "\r"),
        "\ufeff" + TEXT,
        TEXT.replace("GT", "\n\nG\nT"),
    ],
)
def test_what_files_look_like(text):
    alignment = read_alignment(StringIO(text), alphabet="dna")
    assert alignment.names.tolist() == ["a", "b"]
    assert alignment.codes.tolist() == [[1, 2, 3, 4], [1, 2, 0, 4]]


def test_alignments_of_other_programs(shared_data):
    folder = shared_data / "oracles" / "potts"
    path = folder / "plmc_DHFR.a2m.gz"
    alignment = read_alignment(path, focus="DYR_ECOLI", unknown="drop")
    # plmc drops 13 of 3,629 sequences.
    assert alignment.codes.shape == (3616, 159)
    assert alignment.positions.tolist() == list(range(1, 160))
    # plmc numbers residues by the columns of the file; the first and the last of its pairs.
    with gzip.open(folder / "plmc_DHFR.couplings.gz", "rt") as file:
        pairs = [line.split()[:4] for line in file]
    residues = {int(row[0]) - 1: row[1] for row in pairs}
    residues[int(pairs[-1][2]) - 1] = pairs[-1][3]
    assert sorted(residues) == alignment.columns.tolist()
    assert "".join(residues[k] for k in sorted(residues)) == "".join(alignment.letters[0])
    potts = read_alignment(folder / "plmc_potts3.a2m.gz", alphabet="_*^")
    assert potts.codes.shape == (500, 60) and potts.alphabet == "_*^"
    response = read_alignment(folder / "PF00072_train0.6.fasta.xz")
    assert response.codes.shape == (29716, 112)


def test_base_pairs_of_the_riboswitch_are_pairs_of_letters():
    family = load_sam_riboswitch()
    assert family.codes.shape == (4757, 107)
    assert not (family.codes < 0).any()
    assert family.structure.count("(") == family.structure.count(")") == len(family.contacts) == 27
    for i, j in family.contacts:
        assert (family.structure[i], family.structure[j]) == ("(", ")")
        inside = family.structure[i + 1 : j]
        assert inside.count("(") == inside.count(")")
    fits = {"AU", "UA", "CG", "GC", "GU", "UG"}

    def share(i, j):
        return np.mean([a + b in fits for a, b in family.letters[:, [i, j]]])

    # A mistake by one site would leave hardly more than by chance.
    assert np.mean([share(i, j) for i, j in family.contacts]) > 0.9
    assert np.mean([share(i, j + 1) for i, j in family.contacts if j < 106]) < 0.5
    pseudoknot = zip(range(24, 28), range(78, 74, -1), strict=True)
    assert np.mean([share(i, j) for i, j in pseudoknot]) > 0.8
