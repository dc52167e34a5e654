"""What bad input is answered with, word for word: the cases of messages_*.py against messages.txt.

Each module has `CASES`, the calls by what is wrong in them. A call that is refused says the type
and text of its error; one that goes on says its warnings. `make messages` writes the file anew:
its changes are to be read, as prose, before they are committed.
"""

import re
import warnings
from difflib import ndiff
from importlib import import_module
from pathlib import Path

import pytest

HERE = Path(__file__).parent
GOLDEN = HERE / "messages.txt"


def all_cases():
    """Calls by "area: what is wrong"."""
    return {
        f"{path.stem.removeprefix('messages_')}: {name}": call
        for path in sorted(HERE.glob("messages_*.py"))
        for name, call in import_module(f"contract.{path.stem}").CASES.items()
    }


CASES = all_cases()


def said(call):
    """The error of a call, or its warnings, with a line for each line of the text."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            call()
        except Exception as error:
            return f"{type(error).__name__}: {error}"
    return "\n".join(dict.fromkeys(f"{w.category.__name__}: {w.message}" for w in caught))


def read():
    blocks = GOLDEN.read_text(encoding="utf-8").split("\n\n") if GOLDEN.exists() else []
    parts = (block.strip("\n").partition("\n") for block in blocks)
    return {name: "\n".join(line[4:] for line in text.split("\n")) for name, _, text in parts}


def write():
    """Write what all calls say, and print what is new."""
    before, blocks = read(), []
    for name, call in CASES.items():
        text = said(call)
        assert text, f"{name}: neither an error nor a warning"
        if before.get(name) != text:
            print(f"{name}\n    {text}\n")
        blocks.append("\n".join([name, *(f"    {line}" for line in text.split("\n"))]))
    GOLDEN.write_text("\n\n".join(blocks) + "\n", encoding="utf-8")


@pytest.mark.parametrize("area", sorted({name.partition(":")[0] for name in CASES}))
def test_the_messages_are_those_that_were_read(area):
    names = [name for name in CASES if name.startswith(f"{area}: ")]
    golden, found = read(), []
    for name in names:
        text = said(CASES[name])
        if text != golden.get(name):
            found += [name, *ndiff(golden.get(name, "").split("\n"), text.split("\n"))]
    assert found == []


def test_no_message_is_without_its_case():
    assert set(read()) == set(CASES)


def test_messages_have_public_names_only():
    private = re.compile(r"Base|Machine|Stochastic|sklearn_boltz\.restr|\._")
    assert not [name for name, text in read().items() if private.search(text)]


if __name__ == "__main__":
    write()
