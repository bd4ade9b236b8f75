"""`Module`: functions that belong together, compiled here or loaded from a file.

A module is only a name space: each function keeps its own code alive. A module without machine code
(kind `ferrule.ptx`, or another kind with a registered loader) holds the bytes that represent it in
a library. To get a module of tvm-ffi, use `tvm_ffi.load_module`, which takes the same files, or
`Module.system_lib`; `Module.from_tvm_ffi` stands for one that there is already.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from ferrule.runtime.abi import PTX
from ferrule.runtime.artefacts import Stage
from ferrule.runtime.binaries.elf import ObjectFileError
from ferrule.runtime.binaries.importtree import check_kind
from ferrule.runtime.calls.function import Function
from ferrule.runtime.calls.plan import described, origin_of
from ferrule.runtime.errors import NoKernelsError, StageError
from ferrule.runtime.forks import ForkLock
from ferrule.runtime.paths import checked_path

if TYPE_CHECKING:
    import tvm_ffi

    from ferrule.runtime.exporting.export import StrPath
    from ferrule.runtime.exporting.headers import Described
    from ferrule.runtime.loading.finder import Finder
    from ferrule.specs import Signature

Source: TypeAlias = Literal["ir", "ll", "asm", "ptx"]
"""The kinds of texts that a module has, by their usual file suffix."""

_STAGES: Final[Mapping[str, Stage]] = {"ir": "ir", "ll": "llvm", "asm": "asm", "ptx": "ptx"}


class Module:
    """Functions by name: `module["f"]`, `module.f`, `module.get_function("f")`.

    `Module([f, g])` joins compiled functions under their own names, `Module({"f": f})` under the
    keys. `imports` are modules in which a look-up, or generated code, can find further functions;
    modules of tvm-ffi may be among them, as `from_tvm_ffi` takes them.
    """

    def __init__(
        self,
        functions: Iterable[Function] | Mapping[str, Function],
        *,
        imports: Iterable[Module | tvm_ffi.Module] = (),
    ) -> None:
        from ferrule.runtime.exporting.export import named_functions

        given = named_functions(functions)
        makers = {name: self._giving(function) for name, function in given.items()}
        self._setup("jit", None, makers, imports)
        self._given.update(given)

    @classmethod
    def from_bytes(
        cls, kind: str, data: bytes, *, imports: Iterable[Module | tvm_ffi.Module] = ()
    ) -> Module:
        """A module without machine code: `data` are the bytes for the loader of its kind.

        The loader is the global function `ffi.Module.load_from_bytes.<kind>`. It is needed when a
        function is looked up, and when a library with this module is loaded. ValueError for a kind
        that tvm-ffi reserves, and for imports of a module of kind `ferrule.ptx`, because its
        kernels call nothing; ObjectFileError for damaged bytes of kind `ferrule.ptx`.
        """
        check_kind(kind)
        return cls.loaded(kind, None, {}, imports=imports, data=bytes(data))

    @classmethod
    def from_tvm_ffi(cls, module: tvm_ffi.Module) -> Module:
        """The module that stands for one of tvm-ffi, which it keeps alive.

        Its functions and imports are those of tvm-ffi's. In a file it is the bytes that its kind
        makes of it; what is written raises the errors of `saved`. TypeError for anything else.
        """
        import tvm_ffi

        from ferrule.runtime.loading.finder import Finder

        if not isinstance(module, tvm_ffi.Module):
            raise TypeError(f"from_tvm_ffi takes a tvm_ffi.Module, but got {module!r}")
        made = cls.loaded(module.kind, None, {}, finder=Finder(module.kind, b"", module))
        made._live = module
        return made

    @classmethod
    def from_ptx(cls, image: str | bytes, kernels: Iterable[Signature | str]) -> Module:
        """A module of kind `ferrule.ptx`: kernels of PTX text, a cubin or a fatbin.

        `kernels` are their signatures; parameters are numbers, pointers, and tuples of these for
        structs. Each function takes the kernel's parameters, then x, y and z of the grid, x, y and
        z of the block, and the bytes of dynamic shared memory. It launches in the caller's current
        stream, on the GPU of the tensors that are passed for pointers. ValueError for bytes that
        are not an image, and for a kernel that the image does not have.
        """
        from ferrule.runtime.ptx.payload import make_payload, write_payload

        return cls.from_bytes(PTX, write_payload(make_payload(image, kernels)))

    @classmethod
    def loaded(
        cls,
        kind: str,
        path: Path | None,
        makers: Mapping[str, Callable[[], Any]],
        *,
        imports: Iterable[Module | tvm_ffi.Module] = (),
        data: bytes | None = None,
        finder: Finder | None = None,
    ) -> Module:
        """A module of a file; a function is made when it is first looked up.

        `data` are the bytes of a module without machine code; `finder` looks up its functions.
        """
        module = cls.__new__(cls)
        if data is not None and kind == PTX:
            from ferrule.runtime.ptx.functions import makers as ptx_makers
            from ferrule.runtime.ptx.payload import read_payload

            makers, finder, imports = ptx_makers(read_payload(data)), None, tuple(imports)
            if imports:
                raise ObjectFileError(f"a module of kind {PTX} imports nothing")
        elif data is not None:
            from ferrule.runtime.loading.finder import Finder

            finder = finder or Finder(kind, data)
        module._setup(kind, path, makers, imports)
        module._data, module._finder = data, finder
        return module

    def _setup(
        self,
        kind: str,
        path: Path | None,
        makers: Mapping[str, Callable[[], Any]],
        imports: Iterable[Module | tvm_ffi.Module],
    ) -> None:
        self._kind = kind
        self._path = path
        self._file: tuple[str, bytes] | None = None
        self._data: bytes | None = None
        self._live: tvm_ffi.Module | None = None
        self._finder: Finder | None = None
        self._given: dict[str, Function] = {}
        self._makers = dict(makers)
        self._made: dict[str, Any] = {}
        self._lock = ForkLock()
        if not isinstance(imports, Iterable):
            raise TypeError(f"imports must be a list of modules, but got {imports!r}")
        self._imports = tuple(map(_checked, imports))

    def _giving(self, function: Function) -> Callable[[], Function]:
        """A getter for a function; if its code uses imports of this module, it gives a version of
        the function that can find them."""

        def give() -> Function:
            if not self._imports:
                return function
            from ferrule.runtime.exporting.moduletree import nodes_of
            from ferrule.runtime.loading.importing import with_imports

            nodes = nodes_of(self)
            return with_imports(function, nodes) if nodes else function

        return give

    def original(self, name: str) -> Any:
        """The function with this name as it was given to `Module`, or as it is in the file."""
        return self._given[name] if name in self._given else self[name]

    def keep_file(self, suffix: str, data: bytes) -> Module:
        """Store the bytes of the file of which this module is the root; returns the module."""
        self._file = suffix, data
        return self

    @property
    def kind(self) -> str:
        """The kind of the module: `jit` if it was compiled here; `object`, `archive` or `library`
        if it was loaded from a file; or the kind of its bytes, such as `ferrule.ptx`.
        """
        return self._kind

    @property
    def data(self) -> bytes | None:
        """The bytes of a module that was made of bytes; None for other modules."""
        return self._data

    @property
    def live(self) -> tvm_ffi.Module | None:
        """The module of tvm-ffi that this one stands for; None for other modules."""
        return self._live

    @property
    def is_code(self) -> bool:
        """Whether the functions are machine code, which becomes part of a library."""
        return self._data is None and self._live is None

    @property
    def identity(self) -> int:
        """A number that two modules share only if both stand for one module of tvm-ffi."""
        return id(self) if self._live is None else int(self._live.__chandle__())

    @property
    def path(self) -> Path | None:
        """The file that the module was loaded from."""
        return self._path

    @property
    def imports(self) -> Sequence[Module]:
        """The modules that this one imports."""
        if self._live is not None:
            # Somebody may import more into it at any time.
            return tuple(map(Module.from_tvm_ffi, self._live.imports))
        return self._imports

    @property
    def functions(self) -> Mapping[str, Any]:
        """All functions by name. Functions of a foreign library have no names of parameters."""
        return MappingProxyType({name: self[name] for name in self})

    def implements_function(self, name: str, query_imports: bool = False) -> bool:
        """Whether this module has the function, or with `query_imports` an import has it."""
        return name in self or (
            query_imports and any(m.implements_function(name, True) for m in self.imports)
        )

    def get_function(self, name: str, query_imports: bool = False) -> Any:
        """The function of this name. AttributeError, whose message lists the functions."""
        if name in self:
            return self[name]
        for module in self.imports if query_imports else ():
            if module.implements_function(name, True):
                return module.get_function(name, True)
        raise AttributeError(self._missing(name))

    def inspect_source(self, kind: Source = "ll") -> str:
        """The text of all functions: kernel IR, LLVM's IR, assembly, or PTX, which is that of the
        functions with kernels for a GPU.

        Of a file there are the PTX that it has, and its assembly if this machine has objdump or
        llvm-objdump. StageError for another kind, and for a text that there is not.
        """
        stage = _STAGES.get(kind)
        if stage is None:
            raise StageError(kind, _STAGES)
        if self._finder is not None:
            raise StageError(kind, (), f"the module is of kind {self._kind}")
        # The kernels of one image have one text.
        return "\n".join(dict.fromkeys(self._texts(stage)))

    def _texts(self, stage: Stage) -> Iterator[str]:
        """The text of each function; of PTX only those of functions with kernels for a GPU."""
        left_out, count = None, 0
        for name in self:
            try:
                yield origin_of(self.original(name)).text(stage)
                count += 1
            except NoKernelsError as error:
                left_out = error
        if left_out is not None and not count:
            raise left_out

    def write_to_file(self, path: StrPath) -> None:
        """Write the module in the form of the suffix: a library (`.so`, `.a`), a header (`.h`,
        `.hpp`), a stub (`.pyi`), `.ptx` for kernels; for a single function also any form of code.

        A library contains the code of all imported modules, and an import tree with the modules
        without machine code; modules of tvm-ffi are saved by their kinds, which raises the errors
        of `saved`. A loaded file is written unchanged, byte for byte. ValueError for another
        suffix, and for modules that cannot form one library. Otherwise it raises the errors of
        `export_library` and `Function.export_to_c`.
        """
        from ferrule.runtime.exporting.export import (
            export_code,
            export_header,
            export_stub,
            write_again,
            write_library,
        )
        from ferrule.runtime.exporting.moduletree import flattened

        suffix = checked_path(path, "write_to_file").suffix
        if self._file is not None and suffix == self._file[0]:
            write_again(path, self._file[1])
            return
        match suffix:
            case ".so" | ".a":
                functions, tree = flattened(self)
                origins = {name: origin_of(function) for name, function in functions.items()}
                write_library(path, origins, tree)
            # Before the forms of one function: PTX text has all the kernels, however many there
            # are.
            case ".ptx" if self._kind == PTX:
                write_again(path, self.inspect_source("ptx").encode())
            case ".h" | ".hpp" if self.is_code:
                export_header(path, self._described())
            case ".pyi":
                export_stub(path, self._described())
            case _ if len(self) == 1 and not self._imports:
                (name,) = self
                export_code(origin_of(self.original(name)), name, path)
            case _:
                imports = " that imports others" if self._imports else ""
                forms = ".so, .a, .h, .hpp or .pyi" if self.is_code else ".so, .a or .pyi"
                raise ValueError(
                    f"a module of {len(self)} functions{imports} is written to a file that ends in "
                    f"{forms}, but got {os.fsdecode(path)!r}"
                )

    def _described(self) -> list[Described]:
        """The content of headers: the functions under their names in this module."""
        pairs = ((name, described(self.original(name))) for name in self)
        return [(signature.renamed(name), doc) for name, (signature, doc) in pairs]

    def system_lib(self, prefix: str = "") -> tvm_ffi.Module:
        """The functions and the imports as a module of tvm-ffi, which is never freed.

        tvm-ffi makes modules only from files, or from symbols that are registered for the life of
        the process. Therefore the code that this method registers is never freed. A `prefix` means
        one module: the same prefix with the same functions gives the same module. Modules of
        tvm-ffi are imported as they are.
        """
        from ferrule.runtime.exporting.export import with_import_tree
        from ferrule.runtime.exporting.moduletree import flattened, live_imports
        from ferrule.runtime.loading.systemlib import register

        functions, tree = flattened(self, here=True)
        objects = {name: origin_of(f).export(name, ".o") for name, f in functions.items()}
        made = list(with_import_tree(objects, tree).values())
        return register(prefix, made, live_imports(self))

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        # The bytes of the file come first: they contain the imports too.
        if self._file is not None:
            from ferrule.runtime.loading.files import load_module

            return load_module, (self._file[1],)
        if self._data is not None:
            return _unpickled, (self._kind, self._data, self._imports)
        if self._live is not None:
            from ferrule.runtime.exporting.livemodules import saved

            return _unpickled, (self._kind, saved(self._live), self.imports)
        return _joined, ({name: self.original(name) for name in self}, self._imports)

    def __getitem__(self, name: str) -> Any:
        if name not in self:
            raise KeyError(self._missing(name))
        with self._lock:
            if name not in self._made:
                self._made[name] = self._makers[name]()
            return self._made[name]

    def __getattr__(self, name: str) -> Any:
        # Copying and unpickling ask an object for attributes before `_setup` ran. `get_function`
        # would then ask for `_makers`, come back here, and never end.
        if name.startswith("__") or "_makers" not in self.__dict__:
            raise AttributeError(name)
        return self.get_function(name)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._makers]

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __contains__(self, name: object) -> bool:
        if name in self._makers or self._finder is None or not isinstance(name, str):
            return name in self._makers
        # A finder cannot list its functions, so each name is asked for.
        found = self._finder(name)
        if found is not None:
            self._made[name] = found
        return found is not None

    def __len__(self) -> int:
        return len(self._makers)

    def __repr__(self) -> str:
        names = ", ".join(self._makers) or (f"kind {self._kind}" if self._finder else "nothing")
        where = f" from {self._path}" if self._path is not None else ""
        return f"<ferrule.Module of {names}{where}>"

    def _missing(self, name: str) -> str:
        names = ", ".join(self._makers) or "none"
        where = f"{self._path}" if self._path is not None else "the module"
        return f"{where} has no function {name!r}; its functions: {names}"


def _joined(functions: Mapping[str, Function], imports: Sequence[Module]) -> Module:
    """The module of a pickle's functions and imports."""
    return Module(functions, imports=imports)


def _unpickled(kind: str, data: bytes, imports: Sequence[Module]) -> Module:
    return Module.from_bytes(kind, data, imports=imports)


def _checked(module: Any) -> Module:
    import tvm_ffi

    if isinstance(module, tvm_ffi.Module):
        return Module.from_tvm_ffi(module)
    if not isinstance(module, Module):
        raise TypeError(
            f"a module imports others, a ferrule.Module or a tvm_ffi.Module, but got {module!r}; "
            f"Module.from_bytes makes one of what a loader of tvm-ffi reads"
        )
    return module
