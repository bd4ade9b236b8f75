"""Files with kernels as modules: what they define is found and compiled.

A file is imported under its own name with its folder on `sys.path`, as `python -m` would do, so
that other processes can import its functions too.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Final

from ferrule.commands.output import Failure
from ferrule.compiler.errors import CompileError
from ferrule.compiler.options import add_options
from ferrule.libraries.jobs import Job
from ferrule.libraries.library import Library
from ferrule.libraries.recipes import Recipe
from ferrule.runtime import Function


def load_source(path: Path) -> ModuleType:
    """The module of a Python file.

    Failure for a file that there is not, that is none of Python, or that raises; its name must not
    be that of a module which is loaded already.
    """
    if not path.is_file():
        raise Failure(f"{path}: there is no such file", "FileNotFoundError")
    name, folder = path.stem, str(path.resolve().parent)
    if path.suffix != ".py":
        raise Failure(f"{path}: it is no Python file (.py)")
    if not name.isidentifier():
        raise Failure(f"{path}: a file with kernels is imported, but {name!r} is no module's name")
    loaded = sys.modules.get(name)
    if loaded is not None:
        if _is_of(loaded, path):
            return loaded
        raise Failure(
            f"{path}: a module named {name!r} is loaded already, from "
            f"{getattr(loaded, '__file__', None) or 'Python itself'}: give the file another name"
        )
    if folder not in sys.path:
        sys.path.insert(0, folder)
    return _imported(name, path)


def _is_of(module: ModuleType, path: Path) -> bool:
    file = getattr(module, "__file__", None)
    return file is not None and Path(file).resolve() == path.resolve()


def _imported(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise Failure(f"{path}: it is no Python file (.py)")
    module = importlib.util.module_from_spec(spec)
    # Before it runs: dataclasses and pickle look for the module of a class there.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except KeyboardInterrupt:
        raise
    # The file may call sys.exit() too.
    except BaseException as error:
        del sys.modules[name]
        raise Failure(
            f"{path}: the file raised {type(error).__name__}: {error}{_line(error, path)}",
            type(error).__name__,
        ) from error
    return module


def _line(error: BaseException, path: Path) -> str:
    """The last line of the file that the error passed through."""
    found, step = "", error.__traceback__
    while step is not None:
        if step.tb_frame.f_code.co_filename == str(path):
            found = f" (line {step.tb_lineno})"
        step = step.tb_next
    return found


def libraries_of(module: ModuleType, path: Path) -> list[Library]:
    """The libraries that a file lists, in its order.  Failure if there is none."""
    found = list({id(each): each for each in listed(module)}.values())
    if not found:
        raise Failure(
            f"{path}: the file lists no library. Add one at its top level, such as\n"
            f'    library = fe.Library("{path.stem}", [fe.Job(function, [example, …]), …])'
        )
    names = [library.name for library in found]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise Failure(
            f"{path}: two libraries are named {', '.join(map(repr, twice))}: their files would "
            f"replace each other"
        )
    return found


WITHOUT_PATHS: Final = "--strip-paths"
"""An option of what is built: its bytes do not depend on where its source lies."""


def with_words(each: Job | Recipe | Function, words: str) -> Job | Recipe | Function:
    """A job with these options too; what a frontend compiles stays as it is."""
    if isinstance(each, Job):
        return replace(each, options=add_options(each.options, words))
    return each


def listed(module: ModuleType) -> Iterator[Library]:
    """The libraries at the top level, and in lists, tuples and dicts there, as loops make them."""
    for value in vars(module).values():
        values: Iterable[object] = (value,)
        if isinstance(value, list | tuple):
            values = value
        elif isinstance(value, dict):
            values = value.values()
        yield from (each for each in values if isinstance(each, Library))


def functions_of(module: ModuleType) -> dict[str, Function]:
    """The compiled functions at the top level of a file, by their names there."""
    return {name: v for name, v in vars(module).items() if isinstance(v, Function)}


def compiled_functions(path: Path) -> Iterator[tuple[str, Function]]:
    """The functions at the top level of a Python file and in its libraries, by name, as `build`
    compiles them."""
    module = load_source(path)
    compiled = functions_of(module)
    yield from compiled.items()
    has_library = any(True for _ in listed(module))
    for library in libraries_of(module, path) if not compiled or has_library else ():
        for given in library.functions:
            try:
                each = with_words(given, WITHOUT_PATHS)
                function = each if isinstance(each, Function) else each.compile()
            except CompileError as error:
                raise Failure(f"{path}: {library.name}.{given.name}: {error}") from error
            if each.name not in compiled:
                yield each.name, function


def path_and_name(text: str) -> tuple[Path, str | None]:
    """The path, and the name behind its last colon if the text is no path itself."""
    path, colon, name = text.rpartition(":")
    if not colon or Path(text).exists():
        return Path(text), None
    return Path(path), name


def require_name(path: Path, name: str, known: Iterable[str]) -> None:
    """Failure unless a file has a function of this name."""
    names = list(known)
    if name not in names:
        shown = ", ".join(names) or "none"
        raise Failure(f"{path} has no function {name!r}; its functions: {shown}", "KeyError")
