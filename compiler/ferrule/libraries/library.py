"""`Library`: functions that are shipped together, under one name and version."""

from __future__ import annotations

import keyword
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from ferrule.libraries.jobs import Job
from ferrule.libraries.recipes import Recipe
from ferrule.runtime import Function
from ferrule.runtime.exporting.export import check_export_name
from ferrule.specs.deferred import dataclass

VERSION: Final = re.compile(
    r"(?:\d+!)?\d+(?:\.\d+)*(?:(?:a|b|rc)\d+)?(?:\.post\d+)?(?:\.dev\d+)?(?:\+[a-z0-9]+(?:\.[a-z0-9]+)*)?"
)
"""A version in the normal form of PEP 440."""


_TAKEN: Final = frozenset(("ferrule", "jax", "llvmlite", "numpy", "torch", "triton", "tvm_ffi"))
"""Packages that a library, or what calls it, imports."""

_REQUIREMENT: Final = re.compile(
    r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?\s*(?:\[[^\]]*\]\s*)?(?:[<>=!~@;(].*)?"
)
"""A requirement of PEP 508, as far as its name: what follows it begins with one of these."""

_LICENSE: Final = re.compile(r"\(*[\w.+-]+\)*(?: (?:AND|OR|WITH) \(*[\w.+-]+\)*)*", re.ASCII)
"""An expression of SPDX, as far as its words: which licenses there are is for the index to say."""

_NOTHING: Final[Mapping[str, Iterable[str]]] = MappingProxyType({})


@dataclass(frozen=True, init=False)
class Library:
    """Functions that are built and shipped together.

    `name` is the name of the library, of its import package and of its wheel: letters, digits and
    `_`. `functions` are jobs and recipes, which are compiled when the library is built, or
    functions that are compiled already. `version` has the form of PEP 440, `summary` is one line
    for the wheel, `requires` are further requirements of the wheel beside apache-tvm-ffi.
    `license` is an expression of SPDX, such as "Apache-2.0 OR MIT"; `readme` is the wheel's long
    description, a text in Markdown. `torch_ops` are the functions, by their names, that a second
    file registers as operators of PyTorch, `<library>::<function>`; the value is a list of the
    written parameters that the operator makes itself, as `out` of `ferrule.torch_op`.

    TypeError for something else than a job or a function, ValueError for a name or version that a
    wheel cannot have, for no function at all, and for two functions with one name.
    """

    name: str
    functions: tuple[Job | Recipe | Function, ...]
    version: str
    summary: str
    requires: tuple[str, ...]
    license: str
    readme: str
    torch_ops: Mapping[str, tuple[str, ...]]

    def __init__(
        self,
        name: str,
        functions: Iterable[Job | Recipe | Function],
        *,
        version: str = "0.1.0",
        summary: str = "",
        requires: Iterable[str] = (),
        license: str = "",
        readme: str = "",
        torch_ops: Mapping[str, Iterable[str]] = _NOTHING,
    ) -> None:
        put = object.__setattr__
        put(self, "name", _checked_name(name))
        put(self, "functions", _checked_functions(name, functions))
        put(self, "version", _checked_version(name, version))
        put(self, "summary", _one_line(name, "summary", summary))
        put(self, "requires", _checked_requirements(name, requires))
        put(self, "license", _checked_license(name, license))
        put(self, "readme", _checked_text(name, "readme", readme))
        put(self, "torch_ops", _checked_operators(name, torch_ops, self.names))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the functions, in order."""
        return tuple(name_of(each) for each in self.functions)

    def altered(self, functions: Iterable[Job | Recipe | Function]) -> Library:
        """The same library with other functions."""
        names = ("version", "summary", "requires", "license", "readme", "torch_ops")
        more = {name: getattr(self, name) for name in names}
        return Library(self.name, functions, **more)

    def jobs(self) -> Iterator[Job]:
        """The compilations that are not done yet."""
        return (each for each in self.functions if isinstance(each, Job))

    def recipes(self) -> Iterator[Recipe]:
        """The functions that are not made yet."""
        return (each for each in self.functions if isinstance(each, Recipe))


def name_of(function: Job | Recipe | Function) -> str:
    """The name under which a function is exported."""
    return function.name


def _checked_name(name: object) -> str:
    if not isinstance(name, str):
        raise TypeError(f"the name of a Library must be a str, but got {name!r}")
    good = name.isascii() and name.isidentifier() and not keyword.iskeyword(name)
    if not good or name.startswith("_") or name.endswith("_"):
        raise ValueError(
            f"the name of a Library is the name of a package to import and of a wheel: letters, "
            f"digits and _, beginning with a letter and not ending with _, but got {name!r}"
        )
    if name in _TAKEN or name in sys.stdlib_module_names:
        raise ValueError(
            f"a Library cannot be named {name!r}: its package and the module of that name would "
            f"hide each other"
        )
    return name


def _checked_functions(library: str, functions: object) -> tuple[Job | Recipe | Function, ...]:
    if isinstance(functions, str | bytes) or not isinstance(functions, Iterable):
        raise TypeError(
            f"the functions of the library {library} must be a list, but got {functions!r}"
        )
    listed = tuple(functions)
    for each in listed:
        if not isinstance(each, Job | Recipe | Function):
            raise TypeError(
                f"the library {library} is made of jobs (ferrule.Job), recipes (ferrule.Recipe) "
                f"and compiled functions, but got {each!r}"
            )
        check_export_name(name_of(each))
        if keyword.iskeyword(name_of(each)):
            raise ValueError(
                f"the library {library} cannot have a function named {name_of(each)!r}, a word of "
                f"Python: give the job another name, Job(…, name=…)"
            )
    if not listed:
        raise ValueError(f"the library {library} has no functions: give it at least one job")
    names = [name_of(each) for each in listed]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(
            f"the library {library} has two functions named {', '.join(map(repr, twice))}: give "
            f"one of the jobs another name, Job(…, name=…)"
        )
    return listed


def _checked_version(library: str, version: object) -> str:
    if not isinstance(version, str) or not VERSION.fullmatch(version):
        raise ValueError(
            f"the version of the library {library} must be one of PEP 440, such as '1.2.0' or "
            f"'1.0rc1', but got {version!r}"
        )
    return version


def _one_line(library: str, what: str, text: object) -> str:
    if not isinstance(text, str) or len(text.splitlines()) > 1:
        raise ValueError(f"the {what} of the library {library} is one line, but got {text!r}")
    return _checked_text(library, what, text)


def _checked_license(library: str, text: object) -> str:
    line = _one_line(library, "license", text)
    if line and not _LICENSE.fullmatch(line):
        raise ValueError(
            f"the license of the library {library} is an expression of SPDX, such as 'Apache-2.0' "
            f"or 'MIT OR BSD-3-Clause', but got {line!r}"
        )
    return line


def _checked_text(library: str, what: str, text: object) -> str:
    if not isinstance(text, str):
        raise TypeError(f"the {what} of the library {library} must be a str, but got {text!r}")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"the {what} of the library {library} is no text: {error}") from None
    return text


def _checked_operators(
    library: str, operators: object, names: Sequence[str]
) -> Mapping[str, tuple[str, ...]]:
    if not isinstance(operators, Mapping):
        raise TypeError(
            f"the torch_ops of the library {library} are a dict of the parameters that each "
            f"operator makes, such as {{'{names[0]}': ['y']}}, but got {operators!r}"
        )
    found = {}
    for name, out in operators.items():
        if name not in names:
            raise ValueError(
                f"torch_ops has {name!r}, which is no function of the library {library}; these "
                f"are {', '.join(names)}"
            )
        listed = None if isinstance(out, str) or not isinstance(out, Iterable) else tuple(out)
        if listed is None or not all(isinstance(each, str) for each in listed):
            raise TypeError(
                f"torch_ops[{name!r}] of the library {library} is a list of parameters' names, "
                f"but got {out!r}"
            )
        found[name] = listed
    return MappingProxyType(found)


def _checked_requirements(library: str, requires: object) -> tuple[str, ...]:
    if isinstance(requires, str | bytes) or not isinstance(requires, Iterable):
        raise TypeError(
            f"the requirements of the library {library} must be a list of texts such as "
            f"'numpy>=1.26', but got {requires!r}"
        )
    listed = tuple(_one_line(library, "requirement", each) for each in requires)
    for each in listed:
        if not _REQUIREMENT.fullmatch(each):
            raise ValueError(
                f"the requirement {each!r} of the library {library} is none of PEP 508, such as "
                f"'numpy>=1.26'"
            )
    return listed
