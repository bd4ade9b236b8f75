"""`Module`: functions that belong together, compiled here or loaded from a file.

A module is a name space and nothing else: each function keeps its own code alive. For tvm-ffi's
own modules see `tvm_ffi.load_module`, which takes the same files, and `Module.system_lib`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from threading import RLock
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from ferrule.runtime.artefacts import Stage
from ferrule.runtime.errors import StageError
from ferrule.runtime.export import (
    export_code,
    export_header,
    export_stub,
    named_functions,
    write_library,
)
from ferrule.runtime.function import Function, described, origin_of
from ferrule.runtime.headers import Described

if TYPE_CHECKING:
    import tvm_ffi

Source: TypeAlias = Literal["ir", "ll", "asm", "ptx"]
"""The texts of a module, by the suffix that they would have."""

ModuleKind: TypeAlias = Literal["jit", "object", "archive", "library"]
"""Where a module's functions come from: compiled here, an object, an archive, a shared library."""

_STAGES: Final[Mapping[str, Stage]] = {"ir": "ir", "ll": "llvm", "asm": "asm", "ptx": "ptx"}


class Module:
    """Functions by name: `module["f"]`, `module.f`, `module.get_function("f")`.

    `Module([f, g])` joins compiled functions under their own names, `Module({"f": f})` under those
    of the keys; `imports` are modules to look in for what is not here, where a look-up asks for it.
    """

    def __init__(
        self,
        functions: Iterable[Function] | Mapping[str, Function],
        *,
        imports: Iterable[Module] = (),
    ) -> None:
        self._setup(
            "jit", None, {n: _giving(f) for n, f in named_functions(functions).items()}, imports
        )

    @classmethod
    def loaded(
        cls, kind: ModuleKind, path: Path | None, makers: Mapping[str, Callable[[], Any]]
    ) -> Module:
        """A module of a file, whose functions are made when they are asked for."""
        module = cls.__new__(cls)
        module._setup(kind, path, makers, ())
        return module

    def _setup(
        self,
        kind: ModuleKind,
        path: Path | None,
        makers: Mapping[str, Callable[[], Any]],
        imports: Iterable[Module],
    ) -> None:
        self._kind = kind
        self._path = path
        self._makers = dict(makers)
        self._made: dict[str, Any] = {}
        self._lock = RLock()
        self._imports = tuple(imports)

    @property
    def kind(self) -> ModuleKind:
        """Where the functions come from."""
        return self._kind

    @property
    def path(self) -> Path | None:
        """The file that the module was loaded from."""
        return self._path

    @property
    def imports(self) -> Sequence[Module]:
        """The modules that this one imports."""
        return self._imports

    @property
    def functions(self) -> Mapping[str, Any]:
        """All functions by name. A foreign library's are functions of tvm-ffi, without names."""
        return MappingProxyType({name: self[name] for name in self})

    def implements_function(self, name: str, query_imports: bool = False) -> bool:
        """Whether there is a function of this name, here or in what is imported."""
        return name in self._makers or (
            query_imports and any(m.implements_function(name, True) for m in self._imports)
        )

    def get_function(self, name: str, query_imports: bool = False) -> Any:
        """The function of this name. AttributeError that names those there are."""
        if name in self._makers:
            return self[name]
        for module in self._imports if query_imports else ():
            if module.implements_function(name, True):
                return module.get_function(name, True)
        raise AttributeError(self._missing(name))

    def inspect_source(self, kind: Source = "ll") -> str:
        """The text of all functions: kernel IR, LLVM's IR, assembly, or PTX.

        StageError for another kind, and for what was loaded: a file has no texts.
        """
        stage = _STAGES.get(kind)
        if stage is None:
            raise StageError(kind, _STAGES)
        return "\n".join(origin_of(self[name]).text(stage) for name in self)

    def write_to_file(self, path: str | os.PathLike[str]) -> None:
        """Write the module, in the form that the suffix names: a library (`.so`, `.a`), headers
        (`.h`, `.hpp`), a stub (`.pyi`), and of one function any form of code.

        ValueError for another suffix. What fails is what fails for `export_library` and
        `Function.export_to_c`.
        """
        origins = {name: origin_of(self[name]) for name in self}
        match Path(path).suffix:
            case ".so" | ".a":
                write_library(path, origins)
            case ".h" | ".hpp":
                export_header(path, self._described())
            case ".pyi":
                export_stub(path, self._described())
            case _ if len(origins) == 1:
                ((name, origin),) = origins.items()
                export_code(origin, name, path)
            case _:
                raise ValueError(
                    f"a module of {len(origins)} functions is written to a file that ends in .so, "
                    f".a, .h, .hpp or .pyi, but got {os.fspath(path)!r}"
                )

    def _described(self) -> list[Described]:
        """What headers say: functions under their names in this module."""
        pairs = ((name, described(self[name])) for name in self)
        return [(signature.renamed(name), doc) for name, (signature, doc) in pairs]

    def system_lib(self, prefix: str = "") -> tvm_ffi.Module:
        """The functions as a module of tvm-ffi, for good.

        tvm-ffi makes modules of files and of symbols that are registered for the life of the
        process, and in no other way: so the code that this registers is never freed. One `prefix`
        stands for one module; the same again gives the same.
        """
        from ferrule.runtime.systemlib import register

        return register(prefix, [origin_of(self[name]).export(name, ".o") for name in self])

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return _joined, (dict(self.functions), self._imports)

    def __getitem__(self, name: str) -> Any:
        if name not in self._makers:
            raise KeyError(self._missing(name))
        with self._lock:
            if name not in self._made:
                self._made[name] = self._makers[name]()
            return self._made[name]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "_makers" not in self.__dict__:
            raise AttributeError(name)
        return self.get_function(name)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._makers]

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __contains__(self, name: object) -> bool:
        return name in self._makers

    def __len__(self) -> int:
        return len(self._makers)

    def __repr__(self) -> str:
        names = ", ".join(self._makers) or "nothing"
        where = f" from {self._path}" if self._path is not None else ""
        return f"<ferrule.Module of {names}{where}>"

    def _missing(self, name: str) -> str:
        names = ", ".join(self._makers) or "none"
        where = f"{self._path}" if self._path is not None else "the module"
        return f"{where} has no function {name!r}; its functions: {names}"


def _joined(functions: Mapping[str, Function], imports: Sequence[Module]) -> Module:
    """A module of what a pickle holds."""
    return Module(functions, imports=imports)


def _giving(function: Function) -> Callable[[], Function]:
    return lambda: function
