"""The reference: a page for each public module, made of signatures and docstrings.

`write(folder)` writes the pages; `conf.py` does it before each build. A name is public if its
module lists it in `__all__`, or, without that, defines it without an underscore. Docstrings are
Markdown, as the pages are. Each name is followed by the pages whose examples, which the tests run,
use it.
"""

from __future__ import annotations

import importlib
import inspect
import re
import types
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Final, get_origin

DOCS: Final = Path(__file__).resolve().parent

MODULES: Final = (
    "ferrule",
    "ferrule.arch",
    "ferrule.math",
    "ferrule.nvgpu",
    "ferrule.pipeline",
    "ferrule.utils",
    "ferrule.testing",
    "ferrule.cuda",
    "ferrule.ir",
    "ferrule.specs",
    "ferrule.runtime",
    "ferrule.compiler",
    "ferrule.compiler.conventions",
    "ferrule.frontends.c",
    "ferrule.frontends.cuda",
    "ferrule.frontends.cutile",
    "ferrule.frontends.mlir",
    "ferrule.frontends.numba",
    "ferrule.frontends.tilelang",
    "ferrule.frontends.triton",
    "ferrule.frontends.warp",
)
"""The public modules, in the order of the pages."""

_FUNCTIONS: Final = (types.FunctionType, types.BuiltinFunctionType, types.MethodType)
_SHORT: Final = 60
"""Characters of the value of a constant that are shown."""
_PAGES: Final = 6
"""Pages that use a name, of which so many are named."""
_PYTHON: Final = re.compile(r"^```python.*?\n(.*?)^```", re.M | re.S)
_QUOTED: Final = re.compile(r"(: |-> )'((?:[^'\\]|\\.)*)'")
"""An annotation that is a text, because its module postpones all of them."""
_OBJECT: Final = re.compile(r"<(?:[^<>]|<[^<>]*>)*>")
"""A default that is an object: its text has an address, or is no Python."""
_TITLE: Final = re.compile(r"^(?:# )?# (.*)$", re.M)


@dataclass(frozen=True)
class Name:
    """A public name of a module."""

    module: str
    name: str
    value: Any

    @property
    def path(self) -> str:
        """How a program writes it."""
        return f"{self.module}.{self.name}"

    @cached_property
    def doc(self) -> str:
        """Its docstring; "" for a constant, and where there is none."""
        if isinstance(self.value, (int, float, str, tuple, frozenset)):
            return ""
        if isinstance(self.value, type):
            own = self.value.__dict__.get("__doc__") or ""
            # A dataclass without a docstring has got its signature for one.
            return "" if own.startswith(f"{self.value.__name__}(") else inspect.cleandoc(own)
        texts = [inspect.getdoc(self.value)]
        if not isinstance(self.value, _FUNCTIONS) and callable(self.value):
            texts.append(inspect.getdoc(type(self.value).__call__))
        return "\n\n".join(text for text in texts if text)

    @property
    def is_constant(self) -> bool:
        """Whether it is a value, and no function, class or module."""
        is_type = get_origin(self.value) is not None  # an alias, such as of a Literal
        return is_type or not (isinstance(self.value, type) or callable(self.value))


def public(module: str) -> list[Name]:
    """The public names of a module, in alphabetical order; modules are on pages of their own."""
    found = _module(module)
    listed = getattr(found, "__all__", None)
    if listed is None:
        own = vars(found).items()
        listed = [name for name, value in own if getattr(value, "__module__", None) == module]
    names = (Name(module, name, getattr(found, name)) for name in dict.fromkeys(listed))
    kept = (each for each in names if not isinstance(each.value, types.ModuleType))
    return sorted(
        (each for each in kept if not each.name.startswith("_")),
        key=lambda each: each.name.lower(),
    )


def _module(name: str) -> Any:
    """A module; `ferrule.arch` and its like are attributes of the package."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        package, _, rest = name.rpartition(".")
        return getattr(_module(package), rest)


def uses() -> Mapping[tuple[str, str], list[Path]]:
    """The pages whose examples use a name, by the last word of its module and the name."""
    found: dict[tuple[str, str], list[Path]] = defaultdict(list)
    for page in sorted(DOCS.rglob("*.md")):
        if "_build" in page.parts or page.is_relative_to(DOCS / "reference"):
            continue
        text = "\n".join(_PYTHON.findall(page.read_text(encoding="utf-8")))
        for use in dict.fromkeys(_used(text)):
            found[use].append(page)
    for program in sorted(DOCS.glob("gallery/*.py")):
        for use in dict.fromkeys(_used(program.read_text(encoding="utf-8"))):
            found[use].append(program)
    return found


def _used(text: str) -> Iterator[tuple[str, str]]:
    """The names in a program, each behind the last word of its module."""
    for path in re.findall(r"(?<![\w.])(?:[A-Za-z_]\w*\.)+[A-Za-z_]\w*", text):
        words = path.split(".")
        words[0] = "ferrule" if words[0] in ("fe", "cute") else words[0]
        yield from zip(words, words[1:], strict=False)
    for module, names in re.findall(r"^from ([\w.]+) import ([\w, ]+|\([^)]*\))", text, re.M):
        for name in re.findall(r"\w+", names):
            yield module.rpartition(".")[2], name


@cache
def examples() -> Mapping[str, str]:
    """The first line about each name of `fe` on the page of examples, which the tests run."""
    found: dict[str, str] = {}
    text = (DOCS / "by_example.md").read_text(encoding="utf-8")
    for block in _PYTHON.findall(text):
        for part in re.findall(r"^(?:assert .*(?:\n    .*\n\))?)", block, re.M):
            for name in re.findall(r"\bfe\.(\w+)", part)[:1]:
                found.setdefault(name, part)
    return found


# ---- pages ----


def write(folder: Path) -> None:
    """Writes the pages, and one that lists them."""
    folder.mkdir(exist_ok=True)
    known, wanted = uses(), {"index.md": _index()}
    for module in MODULES:
        wanted[f"{module}.md"] = "\n".join(_page(module, known))
    for old in folder.glob("*.md"):
        if old.name not in wanted:
            old.unlink()
    for name, text in wanted.items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def _index() -> str:
    lines = ["# Reference", "", "Every public name, with its signature and what it does.", ""]
    lines += ["```{toctree}", ":maxdepth: 1", "", *MODULES, "```", ""]
    return "\n".join(lines)


def _page(module: str, known: Mapping[tuple[str, str], list[Path]]) -> Iterator[str]:
    names = public(module)
    yield f"# {module}\n"
    about = inspect.getdoc(_module(module))
    if about:
        yield f"{about}\n"
    groups: tuple[tuple[str, Callable[[Name], bool]], ...] = (
        ("Functions", lambda each: callable(each.value) and not isinstance(each.value, type)),
        ("Classes", lambda each: isinstance(each.value, type)),
        ("Values", lambda each: each.is_constant),
    )
    for title, belongs in groups:
        chosen = [each for each in names if belongs(each)]
        if chosen:
            yield f"## {title}\n"
            for each in chosen:
                yield from _entry(each, known)


def _entry(each: Name, known: Mapping[tuple[str, str], list[Path]]) -> Iterator[str]:
    yield f"### `{each.path}`\n"
    if each.is_constant:
        shown = repr(each.value)
        yield f"```python\n{shown if len(shown) <= _SHORT else type(each.value).__name__}\n```\n"
    elif signature := _signature(each.name, each.value):
        yield f"```python\n{signature}\n```\n"
    if each.doc:
        yield f"{each.doc}\n"
    if isinstance(each.value, type):
        yield from _members(each.value)
    if each.module == "ferrule" and each.name in (shown := examples()):
        yield "For example, with what [that page](../by_example.md) defines:\n"
        yield f"```python\n{shown[each.name]}\n```\n"
    pages = known.get((each.module.rpartition(".")[2], each.name), [])
    if pages:
        links = ", ".join(_link(page) for page in pages[:_PAGES])
        yield f"*In* {links}\n"


def _signature(name: str, value: Any) -> str:
    """The call of a function or class; "" where Python does not know it."""
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    text = _QUOTED.sub(r"\1\2", f"{name}{found}")
    return _OBJECT.sub("...", text)


def _members(value: type) -> Iterator[str]:
    """The methods and properties of a class that have a docstring of their own."""
    lines = []
    for name, member in vars(value).items():
        if name.startswith("_"):
            continue
        plain = member.__func__ if isinstance(member, (classmethod, staticmethod)) else member
        doc = inspect.getdoc(plain) if callable(plain) or isinstance(plain, property) else None
        if doc:
            call = _signature(name, plain) if callable(plain) else name
            first, *rest = doc.splitlines()
            lines.append(f"`{call}`")
            lines.append("\n".join([f": {first}", *(f"  {line}".rstrip() for line in rest), ""]))
    if lines:
        yield "\n".join(lines)


def _link(page: Path) -> str:
    found = _TITLE.search(page.read_text(encoding="utf-8"))
    title = found[1] if found else page.stem
    return f"[{title}](../{page.relative_to(DOCS).as_posix()})"


def undocumented(modules: Iterable[str] = MODULES) -> list[str]:
    """The public names without a docstring that are no constants."""
    names = (each for module in modules for each in public(module))
    return [each.path for each in names if not each.doc and not each.is_constant]
