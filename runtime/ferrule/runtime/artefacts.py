"""The artefacts that a compiler passes to the runtime: object code, and its origin.

`runtime` knows no compiler. A function holds an `Origin`, which the maker of the function
implements, and asks it for an object for another target, or for a text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from ferrule.runtime.abi import SYMBOL_PREFIX
from ferrule.runtime.errors import StageError
from ferrule.specs.deferred import dataclass

Stage: TypeAlias = Literal["ir", "mlir", "llvm", "asm", "ptx"]
"""The texts that a function can have: kernel IR, the same as MLIR, LLVM IR, assembly, PTX."""


ExportForm: TypeAlias = Literal[".o", ".ll", ".bc", ".s"]
"""The forms of code that a function is exported in, by the suffix of the file."""


@dataclass(frozen=True, slots=True)
class ObjectCode:
    """A relocatable object that defines `__tvm_ffi_<name>`."""

    name: str
    data: bytes = field(repr=False)
    triple: str
    cpu: str

    @property
    def symbol(self) -> str:
        """The C symbol of the function."""
        return SYMBOL_PREFIX + self.name


class Origin(Protocol):
    """The source of a function: it can emit objects, files and texts of the function."""

    def emit(self, name: str, cpu: str, triple: str) -> ObjectCode:
        """The object for this export name and this target; the same input gives the same bytes."""
        ...

    def export(self, name: str, form: ExportForm, system_lib: str | None = None) -> bytes:
        """The bytes of a file that exports the function under this name, with its metadata.

        With the prefix `system_lib` the code registers itself when a program with it starts.
        `StageError` where there is no such form; the same input gives the same bytes.
        """
        ...

    def text(self, stage: Stage) -> str:
        """The function at this stage; `StageError` where there is no such text."""
        ...


@dataclass(frozen=True, slots=True)
class KernelInfo:
    """The resources of a kernel on a GPU: registers of a thread, bytes of spill stores, spill loads
    and stack of a thread, and bytes of static shared memory of a block."""

    registers: int
    spill_stores: int
    spill_loads: int
    stack: int
    shared: int


@dataclass(frozen=True, slots=True)
class Remark:
    """What became of a loop, an expression or a launch in code for the CPU.

    `file`, `function` and `line` are its place, `what` is "loop", "expression", "kernel" or
    "launch".  `lanes` is the number of elements of a vector: 1 if it is not vectorised, None if
    nothing is left to vectorise.  `text` says all that is known, `hint` what would help, or "".
    """

    file: str
    function: str
    line: int
    what: str
    lanes: int | None
    text: str
    hint: str = ""

    @property
    def place(self) -> str:
        """The file without its folder, and the line; cells of notebooks have numbers for names."""
        name = self.file.rpartition("/")[2]
        return f"line {self.line}" if name[:-3].isdigit() else f"{name}:{self.line}"

    def __str__(self) -> str:
        hint = f" ({self.hint})" if self.hint else ""
        return f"{self.file}:{self.line}: {self.text}{hint}"


class Remarks(tuple[Remark, ...]):
    """The remarks about a function, in the order of its lines; as text, a line for each."""

    __slots__ = ()

    def __str__(self) -> str:
        return "\n".join(map(str, self))

    def _repr_html_(self) -> str:
        """As notebooks show them: a row for each."""
        from ferrule.specs.html.elements import cell, code, fragment, table

        rows = [(code(each.place), cell(each.text), cell(each.hint)) for each in self]
        return fragment(table(("line", "what became of it", "what would help"), rows))


class Page(str):
    """A whole page in HTML; notebooks show it in a frame."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        from html import escape

        frame = 'width="100%" height="600" title="a compilation" style="border:0"'
        return f'<iframe {frame} srcdoc="{escape(self)}"></iframe>'


@runtime_checkable
class RemarkedOrigin(Protocol):
    """An origin that can say what became of its loops."""

    def remarks(self) -> Remarks:
        """What became of each loop and launch; `StageError` where that is unknown."""
        ...

    def report(self) -> str:
        """A page in HTML about the compilation; `StageError` where there is none."""
        ...


@dataclass(frozen=True, slots=True)
class OperatorCode:
    """An object that makes a function an operator of a framework, and the libraries that it needs,
    by their paths on this machine; a process that uses the framework has loaded them."""

    data: bytes
    libraries: tuple[str, ...]


@runtime_checkable
class OperatorOrigin(Protocol):
    """An origin that can make the function an operation of frameworks."""

    def operator(self, name: str, operator: str, out: Sequence[str]) -> OperatorCode:
        """The code for the function that is exported as `name`; see `ferrule.torch_op`."""
        ...

    def handler(self, name: str, symbol: str, out: Sequence[str] | None) -> OperatorCode:
        """The code of the handler `symbol` for the function that is exported as `name`."""
        ...


@runtime_checkable
class DeviceOrigin(Protocol):
    """An origin that knows which GPU architectures its kernels were compiled for."""

    def ptx(self) -> Mapping[str, str]:
        """The PTX of the kernels by architecture; `StageError` where there are none for a GPU."""
        ...

    def kernel_info(self) -> Mapping[str, Mapping[str, KernelInfo]]:
        """The resources of each kernel, by architecture and name."""
        ...


# ---- what is known of a function's kernels, for one architecture or by architecture ----


def ptx_of(origin: Origin) -> str | dict[str, str]:
    """The PTX of the kernels.  StageError where there are none for a GPU."""
    if not isinstance(origin, DeviceOrigin):
        return origin.text("ptx")
    found = dict(origin.ptx())
    return found if len(found) > 1 else next(iter(found.values()))


def kernel_info_of(origin: Origin) -> dict[str, KernelInfo] | dict[str, dict[str, KernelInfo]]:
    """The resources of each kernel, by its name.  StageError if the origin does not know them."""
    if not isinstance(origin, DeviceOrigin):
        raise StageError("ptx", (), "what it was made from says nothing of its kernels")
    found = {arch: dict(kernels) for arch, kernels in origin.kernel_info().items()}
    return found if len(found) > 1 else next(iter(found.values()))
