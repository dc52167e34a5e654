"""The letters of sequences."""

GAP = "-"
# Letters in alphabetical order, as in similar programs.
ALPHABETS = {"protein": "ACDEFGHIKLMNPQRSTVWY", "dna": "ACGT", "rna": "ACGU"}
# Letters for ambiguous or unknown residues, for rare residues and for a stop codon.
_NUCLEOTIDES = "RYSWKMBDHVNX?"
AMBIGUOUS = {"protein": "BJOUXZ*?", "dna": _NUCLEOTIDES, "rna": _NUCLEOTIDES}
AMBIGUOUS_ELSEWHERE = "X?"


def check_alphabet(alphabet):
    """The letters of an alphabet, and the letters for unknown residues."""
    if alphabet in ALPHABETS:
        return ALPHABETS[alphabet], AMBIGUOUS[alphabet]
    unfit = [c for c in alphabet if not "!" <= c <= "~" or c == ">"]
    if len(alphabet) < 2 or unfit or len(set(alphabet)) < len(alphabet):
        raise ValueError(
            "alphabet must be 'protein', 'dna', 'rna' or a string of at least two different "
            f"printable ASCII characters, without '>' and spaces; got {alphabet!r}."
        )
    return alphabet, "".join(c for c in AMBIGUOUS_ELSEWHERE if c not in alphabet)
