"""Alignments of sequences, read from FASTA, A2M and A3M files.

Biopython can read them, too, but the formats are so simple that a dependency is not worth it.
"""

import os
import re
from collections import Counter
from difflib import get_close_matches
from importlib import import_module
from numbers import Integral

import numpy as np
from sklearn.utils import Bunch
from sklearn.utils._param_validation import HasMethods, StrOptions, validate_params

from sklearn_boltz.datasets._alphabets import ALPHABETS, ANY, GAP, SAME, check_alphabet, recognised

# The first bytes of compressed files, and the modules that read them. Some may not be installed.
_COMPRESSION = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\xfd7zXZ": "lzma"}
_GAP, _DOT = ord(GAP), ord(".")
_INSERTIONS = b".abcdefghijklmnopqrstuvwxyz"
# Codes of cells without a letter.
_MISSING, _UNKNOWN, _FOREIGN = -1, -2, -3
# More letters for rare residues than this, as a share, are a sign of another alphabet.
_MOST_UNKNOWN = 0.02


@validate_params(
    {
        "path_or_file": [str, os.PathLike, HasMethods("read")],
        "alphabet": [str],
        "gaps": [StrOptions({"state", "missing"})],
        "unknown": [StrOptions({"missing", "drop", "error"})],
        "focus": [str, Integral, None],
        "as_frame": ["boolean"],
    },
    prefer_skip_nested_validation=True,
)
def read_alignment(
    path_or_file,
    *,
    alphabet="auto",
    gaps="state",
    unknown="missing",
    focus=None,
    as_frame=False,
):
    """Read an alignment of sequences from a FASTA, A2M or A3M file, as a table of codes.

    In A2M and A3M files, capitals and ``-`` are match columns, while small letters and ``.`` are
    insertions. Insertion columns are left out: these are columns without a capital or ``-`` or,
    with a focus, columns without a capital in the focus sequence. In the remaining columns, small
    letters are read as capitals, and ``.`` as ``-``. A file without dots is A3M if all its
    sequences have the same number of capitals and ``-``. Case has no such meaning if a file has
    only small letters, as some programs write nucleotides, or if `alphabet` contains small
    letters.

    Parameters
    ----------
    path_or_file : str, path-like or file-like
        The file or its path. Files compressed with gzip, bzip2 or xz are recognised.
    alphabet : {"auto", "protein", "dna", "rna"} or str, default="auto"
        The 20 amino acids, the four bases, or all letters of your own alphabet, in the order of
        their codes. With ``gaps="state"``, your own alphabet must contain ``-``. ``"auto"`` tells
        proteins, DNA and RNA apart by their letters: at least 90 % of the letters of nucleotides
        are bases. U in DNA is read as T, and T in RNA as U.
    gaps : {"state", "missing"}, default="state"
        How to treat gaps: as one more letter (the first one of "protein", "dna" and "rna"), or as
        missing cells.
    unknown : {"missing", "drop", "error"}, default="missing"
        How to treat letters for unknown or rare residues: as missing cells, by dropping the whole
        sequence, or with an error that names the place. These letters are ``BJOUXZ*?`` in
        proteins, ``RYSWKMBDHVNX?`` in DNA and RNA, and ``X?`` with your own alphabet, unless it
        contains them. Any other letter is an error.
    focus : str or int, default=None
        A sequence whose residues define the columns that are read: its name, its name up to a
        space or a slash, or its number from 0.
    as_frame : bool, default=False
        Whether to return a pandas DataFrame, too.

    Returns
    -------
    alignment : :class:`~sklearn.utils.Bunch`
        Dictionary-like object, with the following attributes.

        codes : ndarray of shape (n_sequences, n_columns), int8
            Position of each letter in `alphabet`; -1 for a missing cell.
        letters : ndarray of shape (n_sequences, n_columns), str
            The letters of the file, as capitals.
        alphabet : str
            All letters, in the order of their codes.
        names : ndarray of shape (n_sequences,), object
            The lines after ``>``.
        rows : ndarray of shape (n_sequences,), int
            Numbers of the sequences in the file, from 0. With ``unknown="drop"``, some are left
            out.
        columns : ndarray of shape (n_columns,), int
            Numbers of the columns in the file, from 0. In A3M files, insertions do not count.
        positions : ndarray of shape (n_columns,), int
            Numbers of the residues in the focus sequence. They start at 1, or at 27 if the name
            ends like ``NAME/27-155``. Without a focus, numbers of the columns from 1.
        frame : DataFrame of shape (n_sequences, n_columns)
            The letters as categories, with NaN for missing cells and the names as index. Columns
            are named by position; with a focus, the residue comes first, as in ``M27``. Only with
            ``as_frame=True``.

    Raises
    ------
    ValueError
        If there is no sequence, if sequences have different lengths, if a letter is not in the
        alphabet, or if the focus does not exist or is not unique. If letters for rare residues,
        other than N in nucleotides, X and ``?``, are more than 2 % of all letters, and `alphabet`
        is not the one that the letters look like: the file is probably of another kind.
    OSError
        If the file cannot be read.

    See Also
    --------
    make_alignment : Simulates an alignment with known couplings.
    sklearn_boltz.metrics.sequence_weights : Weights for similar sequences.

    Examples
    --------
    >>> from io import StringIO
    >>> from sklearn_boltz.datasets import read_alignment
    >>> file = StringIO(">wild/11-14\\nMK.VL\\n>other\\nM-aVX\\n")
    >>> alignment = read_alignment(file, focus="wild")
    >>> alignment.alphabet
    '-ACDEFGHIKLMNPQRSTVWY'
    >>> alignment.codes
    array([[11,  9, 18, 10],
           [11,  0, 18, -1]], dtype=int8)
    >>> alignment.positions, alignment.columns
    (array([11, 12, 13, 14]), array([0, 1, 3, 4]))
    """
    given = alphabet
    # All alphabets with names are of capitals.
    code, alphabet = _code_table("protein" if given == "auto" else given, gaps)
    names, sequences = _parse(_read(path_or_file))
    focus = None if focus is None else _find(focus, names)
    # If small letters or dots have codes, they do not mark insertions.
    a2m = alphabet == alphabet.upper() and "." not in alphabet
    if a2m and not any(map(re.compile(b"[A-Z]").search, sequences)):
        sequences = [sequence.upper() for sequence in sequences]
    cells = _same_length(names, sequences, a2m)
    columns, positions = _columns(cells, a2m, None if focus is None else sequences[focus])
    letters = _capitals(cells[:, columns]) if a2m else cells[:, columns]
    counts = _counts(letters)
    kind = recognised(counts)
    if given == "auto":
        code, alphabet = _code_table(kind, gaps)
    codes = code[letters]
    _check_letters(codes, letters, columns, names, alphabet, unknown, kind)
    if given in ("auto", *ANY) and given != kind:
        _check_share(code, counts, kind, given)
    rows = np.arange(len(names))
    if unknown == "drop":
        rows = np.flatnonzero((codes != _UNKNOWN).all(axis=1))
        if not len(rows):
            raise ValueError(
                "unknown='drop' leaves no sequence: each one has an unknown letter. Use "
                "unknown='missing'."
            )
    if focus is not None:
        positions = _residue_numbers(positions, names[focus])
    alignment = Bunch(
        codes=np.maximum(codes[rows], _MISSING),
        letters=_strings(letters[rows]),
        alphabet=alphabet,
        names=np.array(names, dtype=object)[rows],
        rows=rows,
        columns=columns,
        positions=positions,
    )
    if as_frame:
        first = "" if focus is None else _strings(letters[focus])
        alignment.frame = _frame(alignment, np.char.add(first, positions.astype(str)))
    return alignment


def _code_table(alphabet, gaps):
    """The code of each byte, and the letters that have codes."""
    letters, ambiguous = check_alphabet(alphabet)
    if gaps == "missing":
        letters = letters.replace(GAP, "")
    elif alphabet in ALPHABETS:
        letters = GAP + letters
    code = np.full(256, _FOREIGN, dtype=np.int8)
    code[list(ambiguous.encode())] = _UNKNOWN
    code[list(letters.encode())] = np.arange(len(letters))
    if alphabet in SAME:
        other, own = SAME[alphabet].encode()
        code[other] = code[own]
    if gaps == "missing":
        code[_GAP] = _MISSING
    return code, letters


def _counts(letters):
    """How often each letter occurs, without gaps."""
    counts = np.bincount(letters.ravel(), minlength=256)
    return {chr(k): int(counts[k]) for k in np.flatnonzero(counts) if k != _GAP}


def _check_share(code, counts, kind, given):
    """Raise an error if many letters have no code, and are no letters for any residue either."""
    read_as = kind if given == "auto" else given
    rare = {c: n for c, n in counts.items() if code[ord(c)] == _UNKNOWN and c not in ANY[read_as]}
    n_letters = sum(counts.values())
    if sum(rare.values()) <= _MOST_UNKNOWN * n_letters:
        return
    rare = sorted(rare.items(), key=lambda item: -item[1])
    shares = ", ".join(f"{c!r} {n / n_letters:.1%}" for c, n in rare)
    remedy = f"If they are to be missing cells, pass alphabet={kind!r}."
    if kind != read_as:
        remedy = f"The file looks like alphabet={kind!r}."
    raise ValueError(
        f"Many letters of the file are not residues of the alphabet {read_as!r}: {shares} of all "
        f"letters. {remedy}"
    )


def _read(path_or_file):
    """The bytes of a file, decompressed."""
    if hasattr(path_or_file, "read"):
        content = path_or_file.read()
    else:
        with open(path_or_file, "rb") as file:
            content = file.read()
    if isinstance(content, str):
        content = content.encode()
    for magic, module in _COMPRESSION.items():
        if content.startswith(magic):
            content = _decompressed(content, module, path_or_file)
    return content.removeprefix(b"\xef\xbb\xbf")


def _decompressed(content, module, path_or_file):
    """Content decompressed by a module of the standard library."""
    try:
        return import_module(module).decompress(content)
    except ImportError:
        raise
    except Exception as error:  # of six classes, by module and damage
        is_open = hasattr(path_or_file, "read")
        name = getattr(path_or_file, "name", "the file") if is_open else path_or_file
        raise ValueError(
            f"{str(name)!r} is cut off or damaged ({error}). Copy or fetch it again."
        ) from error


def _parse(content):
    """Names and sequences. Spaces and empty lines between letters are ignored."""
    names, parts = [], []
    for line in content.splitlines():
        if line.startswith(b">"):
            names.append(line[1:].strip().decode(errors="replace"))
            parts.append([])
        elif names:
            parts[-1] += line.split()
        elif line.strip():
            raise ValueError(
                f"The file begins with {line[:40].decode(errors='replace')!r} and is not FASTA, in "
                "which each sequence follows a line '>NAME'. Convert other formats, such as "
                "Stockholm or Clustal, to FASTA or A2M first."
            )
    if not names:
        raise ValueError("The file has no sequence: it has no line that starts with '>'.")
    return names, [b"".join(lines) for lines in parts]


def _find(focus, names):
    """The number of the focus sequence."""
    if isinstance(focus, Integral):
        if not 0 <= focus < len(names):
            raise ValueError(
                f"focus is {focus}, but the sequences of the file are numbered from 0 to "
                f"{len(names) - 1}."
            )
        return int(focus)
    found = [k for k, name in enumerate(names) if focus in (name, *_short_names(name))]
    if len(found) > 1:
        raise ValueError(
            f"focus={focus!r} is the name of {len(found)} sequences, such as numbers {found[0]} "
            f"and {found[1]}. Give a number instead."
        )
    if not found:
        near = get_close_matches(focus, [short for name in names for short in _short_names(name)])
        hint = f"; the most similar name is {near[0]!r}" if near else ""
        raise ValueError(f"The file has no sequence named focus={focus!r}{hint}.")
    return found[0]


def _short_names(name):
    word = (name.split() or [""])[0]
    return word, word.split("/")[0]


def _insertions(cells):
    """Small letters and dots."""
    return (cells == _DOT) | ((cells >= ord("a")) & (cells <= ord("z")))


def _same_length(names, sequences, a2m):
    """All sequences as one array of bytes. In A3M files, which have no dots, without insertions."""
    matches = [s.translate(None, _INSERTIONS) for s in sequences] if a2m else sequences
    lengths, n_matches = ([len(sequence) for sequence in rows] for rows in (sequences, matches))
    if len(set(lengths)) == 1:
        cells = _as_array(sequences)
        # A3M sequences may have equal lengths by chance; insertions are then next to capitals.
        inserted = _insertions(cells)
        if not (a2m and len(set(n_matches)) == 1 and (inserted != inserted[0]).any()):
            return cells
        if (cells == _DOT).any():
            return cells
    if len(set(n_matches)) == 1:
        return _as_array(matches)
    raise ValueError(f"The sequences are not aligned: {_odd_ones(names, lengths, n_matches)}")


def _odd_ones(names, lengths, n_matches):
    """Which sequences are not as long as most, in words, and what to do."""
    usual, n_usual = Counter(n_matches).most_common(1)[0]
    odd = [k for k, n in enumerate(n_matches) if n != usual]
    k, like, n_more = odd[0], n_matches.index(usual), len(odd) - 1
    left_out, others = "", f"{names[like]!r} has {usual}"
    if n_matches[k] != lengths[k] or usual != lengths[like]:
        left_out = " and without insertions (small letters and dots)"
    if n_usual > 1:
        others = f"{n_usual:,} of {len(names):,} sequences have {usual}"
    what = (
        f"{names[k]!r} (number {k}) has a length of {n_matches[k]}, with gaps{left_out}, but "
        f"{others}."
    )
    if odd == [len(names) - 1] and n_matches[-1] < usual and n_usual > 1:
        return f"{what} As it is the last one, the file may be cut off: fetch it again."
    if 2 * n_usual <= len(names):
        return f"{what} Align them first."
    more = f" {n_more:,} more differ from these." if n_more else ""
    return f"{what}{more} Align them first, or leave out {'those' if n_more else 'this one'}."


def _as_array(sequences):
    return np.frombuffer(b"".join(sequences), np.uint8).reshape(len(sequences), len(sequences[0]))


def _columns(cells, a2m, focus):
    """The columns to read, and their numbers from 1, in the focus sequence if there is one."""
    inserted = _insertions(cells) if a2m else np.zeros(cells.shape, dtype=bool)
    if focus is None:
        columns = np.flatnonzero(~inserted.all(axis=0))
        positions = np.arange(1, len(columns) + 1)
    else:
        focus = np.frombuffer(focus, np.uint8)
        match = ~_insertions(focus) if a2m else np.ones(len(focus), dtype=bool)
        numbers = np.cumsum((focus != _GAP) & (focus != _DOT))
        if cells.shape[1] < len(focus):
            focus, numbers, match = focus[match], numbers[match], match[match]
        columns = np.flatnonzero(match & (focus != _GAP))
        positions = numbers[columns]
    if not len(columns):
        raise ValueError("The alignment has no match column: no capital letter and no '-'.")
    return columns, positions


def _capitals(cells):
    """Match columns: small letters as capitals, dots as gaps."""
    letters = np.where(_insertions(cells), cells & ~np.uint8(32), cells)
    letters[cells == _DOT] = _GAP
    return letters


def _check_letters(codes, letters, columns, names, alphabet, unknown, kind):
    """Raise an error for the first letter without a code."""
    foreign = codes == _FOREIGN
    if unknown == "error":
        foreign |= codes == _UNKNOWN
    if not foreign.any():
        return
    row, column = np.argwhere(foreign)[0]
    # A letter beyond ASCII has several bytes in UTF-8.
    letter = letters[row, column : column + 4].tobytes().decode(errors="replace")[0]
    if codes[row, column] == _UNKNOWN:
        remedy = "unknown='missing' makes it a missing cell, unknown='drop' drops the sequence"
    elif letter == GAP:
        remedy = "add '-' to it, or set gaps='missing'"
    elif letter in ALPHABETS[kind]:
        remedy = f"the file looks like alphabet={kind!r}"
    elif letter > "~":
        remedy = "correct it; letters are ASCII"
    else:
        remedy = "correct it, or let alphabet be the string of all letters of the file"
    raise ValueError(
        f"Sequence {names[row]!r} (number {row}) has {letter!r} in column {columns[column]}, which "
        f"is not in the alphabet {alphabet!r}: {remedy}."
    )


def _residue_numbers(positions, name):
    """Residue numbers with the start given by the name: NAME/27-155, or NAME/155-27 if reversed."""
    found = re.search(r"/(\d+)-(\d+)$", _short_names(name)[0])
    if not found:
        return positions
    start, end = map(int, found.groups())
    return start + (positions - 1) if start <= end else start - (positions - 1)


def _strings(letters):
    return letters.view("S1").astype("U1")


def _frame(alignment, columns):
    """Letters as categories."""
    import pandas as pd

    dtype = pd.CategoricalDtype(list(alignment.alphabet))
    cells = {
        column: pd.Categorical.from_codes(codes, dtype=dtype)
        for column, codes in zip(columns, alignment.codes.T, strict=True)
    }
    return pd.DataFrame(cells, index=pd.Index(alignment.names, name="name"))
