"""The letters of sequences."""

GAP = "-"
# Letters in alphabetical order, as in similar programs.
ALPHABETS = {"protein": "ACDEFGHIKLMNPQRSTVWY", "dna": "ACGT", "rna": "ACGU"}
# Letters for ambiguous or unknown residues, for rare residues and for a stop codon.
_NUCLEOTIDES = "RYSWKMBDHVNX?"
AMBIGUOUS = {"protein": "BJOUXZ*?", "dna": _NUCLEOTIDES, "rna": _NUCLEOTIDES}
AMBIGUOUS_ELSEWHERE = "X?"
# In each, a letter of the other alphabet of nucleotides and the letter as which it is read.
SAME = {"dna": "UT", "rna": "TU"}
# Letters for any residue at all, in each alphabet that has names.
ANY = {"protein": "X?", "dna": "NX?", "rna": "NX?"}
# At least this share of the letters of nucleotides are bases; of proteins, about a fifth.
LEAST_BASES = 0.9


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


def recognised(counts):
    """The alphabet "protein", "dna" or "rna", by how often each letter, without gaps, occurs."""
    n_letters = {c: n for c, n in counts.items() if c not in ANY["dna"]}
    n_bases = sum(n_letters.get(c, 0) for c in "ACGTU")
    if not n_bases or n_bases < LEAST_BASES * sum(n_letters.values()):
        return "protein"
    return "rna" if counts.get("U", 0) > counts.get("T", 0) else "dna"
