"""The reference: a page for each public module, made of signatures and docstrings.

`write(folder)` writes the pages; `conf.py` does it before each build. A name is public if its
module lists it in `__all__`, or, without that, defines it without an underscore. Docstrings are
Markdown, as the pages are. Each name is followed by an example, and by the pages that use it: the
tests run all of them, and fail for a name without one.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import types
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import islice
from pathlib import Path
from typing import Any, Final, get_origin

DOCS: Final = Path(__file__).resolve().parent

MODULES: Final = (
    "ferrule",
    "ferrule.arch",
    "ferrule.math",
    "ferrule.nvgpu",
    "ferrule.nvgpu.cpasync",
    "ferrule.nvgpu.warp",
    "ferrule.nvgpu.warpgroup",
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

ELSEWHERE: Final = (
    "by_example/gpu.md",
    "cuda_arrays.md",
    "emulated_checks.md",
    "emulated_gpu.md",
    "frontends_cutile.md",
    "frontends_numba.md",
    "frontends_tilelang.md",
    "frontends_warp.md",
)
"""The pages whose blocks `python no-run` are one program, which a test of their own runs."""
PROGRAMS: Final = "by_example/frontends.md"
"""The page whose blocks `python no-run` are a program each, which a test of its own runs."""

_FUNCTIONS: Final = (types.FunctionType, types.BuiltinFunctionType, types.MethodType)
_SHORT: Final = 60
"""Characters of the value of a constant that are shown."""
_PAGES: Final = 6
"""Pages that use a name, of which so many are named."""
_LINES: Final = 25
"""Lines of an example that is shown, and not only named."""
_BLOCK: Final = re.compile(r"^```(.*)\n((?:.*\n)*?)```$", re.M)
_QUOTED: Final = re.compile(r"(: |-> )'((?:[^'\\]|\\.)*)'")
"""An annotation that is a text, because its module postpones all of them."""
_OBJECT: Final = re.compile(r"<(?:[^<>]|<[^<>]*>)*>")
"""A default that is an object: its text has an address, or is no Python."""
_TITLE: Final = re.compile(r"^(?:# )?# (?!%%)(.*)$", re.M)


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
        listed = [n for n, value in own if getattr(value, "__module__", None) == found.__name__]
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


# ---- examples ----


@dataclass(frozen=True)
class Example:
    """Statements of a page, or of a tutorial."""

    page: Path
    text: str

    @property
    def is_short(self) -> bool:
        """Whether it is shown, and not only named."""
        return self.text.count("\n") < _LINES

    @property
    def rank(self) -> tuple[bool, bool, bool, int, int]:
        """Pages of examples come first, what says its result, and short ones."""
        away = self.page.parent.name != "by_example"
        silent = "assert" not in self.text and "print" not in self.text
        return away, not self.is_short, silent, self.text.count("\n"), len(self.text)


@cache
def uses() -> Mapping[str, list[Example]]:
    """The examples of each path, such as `ferrule.arch.popc`, in the order of the pages."""
    found: dict[str, list[Example]] = defaultdict(list)
    for page, text in _programs():
        for path, example in _examples(page, text):
            found[path].append(example)
    return found


def _programs() -> Iterator[tuple[Path, str]]:
    """What tests run of each page, and the tutorials."""
    for page in sorted(DOCS.rglob("*.md")):
        if "_build" in page.parts or page.is_relative_to(DOCS / "reference"):
            continue
        name = page.relative_to(DOCS).as_posix()
        wanted = "python no-run" if name in (*ELSEWHERE, PROGRAMS) else "python"
        blocks = [text for info, text in _BLOCK.findall(page.read_text("utf-8")) if info == wanted]
        for text in blocks if name == PROGRAMS else ["\n".join(blocks)]:
            yield page, text
    for program in sorted(DOCS.glob("gallery/*.py")):
        yield program, program.read_text(encoding="utf-8")


def _examples(page: Path, text: str) -> Iterator[tuple[str, Example]]:
    """The paths that each statement of a program uses, with the statement and what shows it."""
    lines = text.splitlines()
    body = [each for each in ast.parse(text).body if not isinstance(each, _IMPORTS)]
    names = dict(_imported(text))
    for place, statement in enumerate(body):
        shown = _lines(statement, lines)
        if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            calls = (each for each in body[place + 1 :] if _names(each, statement.name))
            shown += "".join(f"\n\n{_lines(each, lines)}" for each in islice(calls, 1))
        for path in dict.fromkeys(_paths(statement, names)):
            yield path, Example(page, shown)


_IMPORTS: Final = (ast.Import, ast.ImportFrom)


def _lines(statement: ast.stmt, lines: list[str]) -> str:
    decorators = getattr(statement, "decorator_list", [])
    first = min(each.lineno for each in (statement, *decorators))
    return "\n".join(lines[first - 1 : statement.end_lineno])


def _names(statement: ast.stmt, name: str) -> bool:
    """Whether a statement uses a variable."""
    return any(isinstance(each, ast.Name) and each.id == name for each in ast.walk(statement))


def _imported(text: str) -> Iterator[tuple[str, str]]:
    """What a program's imports bind, and the path of each."""
    for each in ast.walk(ast.parse(text)):
        if isinstance(each, ast.Import):
            for name in each.names:
                yield name.asname or name.name, name.name
        elif isinstance(each, ast.ImportFrom):
            for name in each.names:
                yield name.asname or name.name, f"{each.module}.{name.name}"


def _paths(statement: ast.stmt, names: Mapping[str, str]) -> Iterator[str]:
    """The paths in a statement; of `fe.arch.popc` also `ferrule.arch`."""
    for each in ast.walk(statement):
        words: list[str] = []
        while isinstance(each, ast.Attribute):
            words.insert(0, each.attr)
            each = each.value
        if isinstance(each, ast.Name) and each.id in names:
            yield ".".join([names[each.id], *words])


def examples(each: Name) -> list[Example]:
    """The examples of a name, the best one first; of an object, under any of its names."""
    found = [example for path in same(each) for example in uses().get(path, ())]
    return sorted(found, key=lambda example: example.rank)


def same(each: Name) -> list[str]:
    """The paths by which a name's object is public, its own first."""
    others = _paths_of().get(id(each.value), []) if not each.is_constant else []
    return [each.path, *(path for path in others if path != each.path)]


@cache
def _paths_of() -> Mapping[int, list[str]]:
    found: dict[int, list[str]] = defaultdict(list)
    for each in (name for module in MODULES for name in public(module)):
        found[id(each.value)].append(each.path)
    return found


def without_example() -> list[str]:
    """The public names that no example uses."""
    names = (each for module in MODULES for each in public(module))
    return [each.path for each in names if not examples(each)]


# ---- pages ----


def write(folder: Path) -> None:
    """Writes the pages, and one that lists them."""
    folder.mkdir(exist_ok=True)
    wanted = {"index.md": _index()}
    for module in MODULES:
        wanted[f"{module}.md"] = "\n".join(_page(module))
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


def _page(module: str) -> Iterator[str]:
    names = public(module)
    yield f"# {module}\n"
    about = inspect.getdoc(_module(module))
    if about:
        yield f"{about}\n"
    yield from _overview(names)
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
                yield from _entry(each)


def _overview(names: Iterable[Name]) -> Iterator[str]:
    """A line for each name, with its first sentence."""
    lines = [f"| [`{each.name}`](#{_anchor(each.path)}) | {_sentence(each)} |" for each in names]
    yield "\n".join(["| | |", "|---|---|", *lines, ""])


def _sentence(each: Name) -> str:
    """The first sentence of a docstring, as a cell; the value of a constant."""
    if each.is_constant:
        return f"`{repr(each.value)[:_SHORT]}`".replace("|", "\\|")
    first = re.split(r"(?<=[.:])\s+(?=[A-Z`])|\n\n", each.doc, maxsplit=1)[0]
    return " ".join(first.split()).replace("|", "\\|").removesuffix(":")


def _entry(each: Name) -> Iterator[str]:
    yield f"### `{each.path}`\n"
    if each.is_constant:
        shown = repr(each.value)
        yield f"```python\n{shown if len(shown) <= _SHORT else type(each.value).__name__}\n```\n"
    elif signature := _signature(each.name, each.value):
        yield f"```python\n{signature}\n```\n"
    if others := same(each)[1:]:
        yield f"The same as {', '.join(map(_name_link, others))}.\n"
    if each.doc:
        yield f"{each.doc}\n"
    if isinstance(each.value, type):
        yield from _members(each.value)
    yield from _example(each)


def _example(each: Name) -> Iterator[str]:
    """The best example, if it is short, and links to the pages of all."""
    found = examples(each)
    if not found:
        return
    if found[0].is_short:
        yield f"For example, with what {_link(found[0].page)} defines:\n"
        yield f"```python\n{found[0].text}\n```\n"
        found = [other for other in found if other.page != found[0].page]
    if found:
        pages = dict.fromkeys(_link(other.page) for other in found)
        yield f"*In* {', '.join(islice(pages, _PAGES))}\n"


def _name_link(path: str) -> str:
    return f"[`{path}`]({path.rpartition('.')[0]}.md#{_anchor(path)})"


def _anchor(path: str) -> str:
    """The anchor of the heading of a name."""
    return re.sub(r"[^\w-]", "", path.lower())


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
