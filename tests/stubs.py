"""Type stubs of the public names, from their signatures and docstrings; `make stubs` writes them.

What a docstring says in words alone, as "array-like" or "estimator", is Any.
"""

import importlib
import inspect
import re
from pathlib import Path

from numpydoc.docscrape import ClassDoc, FunctionDoc
from sklearn.base import BaseEstimator, ClassifierMixin, OutlierMixin, TransformerMixin

MODULES = ["", "batches", "callbacks", "datasets", "inspection", "loglinear", "metrics", "networks"]
MODULES += ["restricted", "statistics"]
HEADER = """\
# Made by `make stubs` from signatures and docstrings.
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, OutlierMixin, TransformerMixin
"""
RANDOM = "np.random.RandomState"
TYPES = {name: name for name in ("int", "float", "bool", "str", "None")}
TYPES |= {"dict": "dict[Any, Any]", "list": "list[Any]"}
TYPES |= {"RandomState instance": RANDOM, "RandomState": RANDOM, "Generator": "np.random.Generator"}
# scikit-learn's own, from the last to the first, and what these have.
BASES = [BaseEstimator, TransformerMixin, ClassifierMixin, OutlierMixin]
INHERITED = {*dir(BaseEstimator), *dir(TransformerMixin), "set_callbacks"} - {"fit_transform"}
# What returns the container of the user.
CONTAINERS = {"transform", "fit_transform", "impute", "sample", "explain", "denoise", "gibbs"}


def home(name):
    """Return the module whose stub has a public name, the first one that shows it."""
    for module in MODULES:
        if name in public(module).__all__:
            return public(module).__name__
    return None


def public(module):
    return importlib.import_module(f"sklearn_boltz.{module}" if module else "sklearn_boltz")


def of_text(text, default=None):
    """Return the type that a docstring gives in words."""
    text = re.sub(r",? ?(keyword-only|default=.*)$", "", text)
    text = re.sub(r" of (shape|float64|int|str).*$", "", text) if "ndarray" in text else text
    literals = re.findall(r"\{([^}]*)\}", text) + re.findall(r'"\w+"(?![^{]*\})', text)
    rest = re.sub(r'\{[^}]*\}|"\w+"', "", text)
    words = [word.strip() for word in re.split(r",| or ", rest) if word.strip(" ,")]
    if any(re.search(r"float(32|64)", literal) for literal in literals):
        return "Any"
    if not all(word in TYPES for word in words) or not (words or literals):
        return "Any"
    found = [f"Literal[{', '.join(literals)}]"] if literals else []
    found += [TYPES[word] for word in dict.fromkeys(words)]
    if default is None and "None" not in found:
        found.append("None")
    return " | ".join(dict.fromkeys(found))


def of_result(function, owner):
    returned = FunctionDoc(function)["Returns"]
    text = returned[0].type.strip(":") if len(returned) == 1 else "" if returned else "None"
    if owner and text in {owner, "estimator", "self"}:
        return "Self"
    if text.startswith("ndarray") and " or " not in text and function.__name__ not in CONTAINERS:
        return "NDArray[Any]"
    return TYPES.get(text) or (text if home(text) else "Any")


def signature(function, docs, owner="", result=None):
    types = {name.strip(): p.type for p in docs["Parameters"] for name in p.name.split(",")}
    parameters, kinds = [], inspect.Parameter
    starred = False
    for name, p in inspect.signature(function).parameters.items():
        if p.kind is kinds.KEYWORD_ONLY and not starred:
            parameters.append("*")
        starred = starred or p.kind in (kinds.KEYWORD_ONLY, kinds.VAR_POSITIONAL)
        stars = {kinds.VAR_POSITIONAL: "*", kinds.VAR_KEYWORD: "**"}.get(p.kind, "")
        if name in {"self", "cls"}:
            parameters.append(name)
            continue
        required = p.default is kinds.empty
        text = of_text(types.get(name, ""), ... if required else p.default)
        value = "" if required else " = ..."
        parameters.append(f"{stars}{name}: {text}{value}")
    return f"({', '.join(parameters)}) -> {result or of_result(function, owner)}: ..."


def of_method(cls, name):
    """Return the lines of an attribute of a class."""
    kind = type(inspect.getattr_static(cls, name)).__name__
    if kind == "property":
        return ["    @property", f"    def {name}(self) -> Any: ..."]
    method = getattr(cls, name)
    if not callable(method):
        return [f"    {name}: Any"]
    text = signature(method, FunctionDoc(method), cls.__name__)
    first = {"classmethod": "cls, ", "staticmethod": ""}.get(kind, "self, ")
    if not text.startswith("(self"):
        text = f"({first}{text[1:]}".replace(", )", ")")
    decorator = [f"    @{kind}"] if kind in {"classmethod", "staticmethod"} else []
    return [*decorator, f"    def {name}{text}"]


def of_class(cls):
    docs = ClassDoc(cls)
    listed = [p for p in docs["Parameters"] + docs["Attributes"] if p.name.isidentifier()]
    attributes = {p.name: of_text(p.type, ...) for p in listed}
    bases = ", ".join(base.__name__ for base in BASES[::-1] if issubclass(cls, base))
    init = signature(cls, docs, result="None").replace("(", "(self, ", 1).replace(", )", ")")
    lines = [f"class {cls.__name__}({bases}):".replace("()", ""), f"    def __init__{init}"]
    lines += [f"    {name}: {text}" for name, text in attributes.items()]
    hidden = {*attributes, *dir(tuple), *(INHERITED if bases else ())}
    for name in sorted({name for name in dir(cls) if name[0] != "_"} - hidden):
        if not re.fullmatch("set_.*_request", name):
            lines += of_method(cls, name)
    return lines


def stub(module):
    """Return the stub of a module."""
    known = public(module)
    imports, lines = [], []
    for name in known.__all__:
        member = getattr(known, name)
        if home(name) != known.__name__:
            imports.append(f"from {home(name)} import {name} as {name}")
        elif inspect.isclass(member):
            lines += ["", *of_class(member)]
        elif callable(member):
            lines += ["", f"def {name}{signature(member, FunctionDoc(member))}"]
        else:
            lines += ["", f"{name}: Any"]
    text = "\n".join(lines)
    for name in sorted(set(re.findall(r"-> (\w+): \.\.\.", text))):
        if home(name) not in (None, known.__name__):
            imports.append(f"from {home(name)} import {name}")
    extra = "\n__version__: str\n" if not module else ""
    return "\n".join([HEADER, *sorted(imports), extra, text.strip(), ""])


def path(module):
    return Path(public(module).__file__).with_suffix(".pyi")


if __name__ == "__main__":
    for module in MODULES:
        path(module).write_text(stub(module), encoding="utf-8")
