"""What a kernel takes, as its binary says, and whether a launch gives that.

A launch hands the driver a list of addresses and nothing more: a parameter too few, too many or of
another size is no error there, and the kernel reads what it finds.  So the list is compared here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from ferrule.compiler.errors import CompileError, Diagnostic

Dims: TypeAlias = "tuple[int, int, int]"

_POINTER: Final = 8
_BY_SIZE: Final = {1: "int8", 2: "int16", 4: "int32", 8: "int64"}


@dataclass(frozen=True, slots=True)
class KernelParameter:
    """A parameter: where it is in the parameter space, its size, both in bytes.

    `align` is None where the binary does not say it: a cubin does not.  Offsets of PTX are those of
    a space that begins at 0.  On the machine it begins at an address that is aligned to 16 or 32,
    so parameters that ask for more, such as tensor maps, can be at others in a cubin: sizes are
    what is compared.
    """

    offset: int
    size: int
    align: int | None = None


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable in the memory of a GPU, `__device__` or `__constant__`: its bytes, whether the
    binary has a value for it other than 0, whether kernels cannot write it, and whether the kernel
    uses it, None where that is not known."""

    name: str
    size: int
    is_set: bool
    is_constant: bool
    is_used: bool | None = None


@dataclass(frozen=True, slots=True)
class KernelParameters:
    """What a binary for one architecture says of a kernel.

    `required_block` is the only block that it may be launched with (PTX's `.reqntid`), `max_block`
    one whose number of threads is the most (`.maxntid`), `cluster` the blocks of its clusters
    (`.reqnctapercluster`); None where it says nothing.  `static_shared` is its static shared memory
    in bytes, of PTX what the text shows.  `registers` is known of a cubin alone.  `variables` are
    those of the module; a cubin does not tell which of them it uses.  `dynamic_shared` says that
    it uses shared memory whose size the launch says, which a cubin does not tell.
    """

    kernel: str
    arch: str
    parameters: tuple[KernelParameter, ...]
    required_block: Dims | None = None
    max_block: Dims | None = None
    cluster: Dims | None = None
    static_shared: int = 0
    registers: int | None = None
    variables: tuple[Variable, ...] = ()
    dynamic_shared: bool = False

    @property
    def sizes(self) -> tuple[int, ...]:
        """The bytes of each parameter."""
        return tuple(parameter.size for parameter in self.parameters)

    @property
    def size(self) -> int:
        """The bytes of all parameters, with what lies between them."""
        if not self.parameters:
            return 0
        return self.parameters[-1].offset + self.parameters[-1].size

    def __str__(self) -> str:
        return f"kernel {self.kernel} of {self.arch}"


def check_packed(kernel: KernelParameters, packed: Sequence[tuple[int, str]]) -> None:
    """CompileError where a kernel does not take these: the bytes of each, and what it is."""
    given = [size for size, _ in packed]
    if given == list(kernel.sizes):
        return
    raise CompileError(
        Diagnostic(
            f"{kernel} takes {_counted(kernel.sizes)}, but the list has {_counted(given)}",
            hint=_hint(kernel.sizes, given),
            notes=(*_differences(kernel.sizes, packed), _listed(packed)),
        )
    )


def _counted(sizes: Sequence[int]) -> str:
    if not sizes:
        return "no parameters"
    many = "parameter" if len(sizes) == 1 else "parameters"
    return f"{len(sizes)} {many} of {', '.join(map(str, sizes))} bytes"


def _listed(packed: Sequence[tuple[int, str]]) -> str:
    rows = (f"#{number} {what} ({size})" for number, (size, what) in enumerate(packed))
    return f"the list: {', '.join(rows) or 'empty'}"


def _differences(wanted: Sequence[int], packed: Sequence[tuple[int, str]]) -> Iterator[str]:
    """The fewest parameters that are missing, too much or of another size, in their order."""
    given = [size for size, _ in packed]
    least = _distances(wanted, given)
    i = j = 0
    while i < len(wanted) or j < len(given):
        both, rest = i < len(wanted) and j < len(given), least[i][j]
        if both and wanted[i] == given[j] and rest == least[i + 1][j + 1]:
            i, j = i + 1, j + 1
        elif both and rest == least[i + 1][j + 1] + 1:
            size, what = packed[j]
            yield f"#{i} is {what} of {size} bytes, wanted {wanted[i]}"
            i, j = i + 1, j + 1
        elif i < len(wanted) and rest == least[i + 1][j] + 1:
            yield f"#{i}, {wanted[i]} bytes, is missing"
            i += 1
        else:
            size, what = packed[j]
            yield f"{what}, {size} bytes, is too much"
            j += 1


def _distances(wanted: Sequence[int], given: Sequence[int]) -> list[list[int]]:
    """At [i][j] how many differences there are behind the first i and j at least."""
    rows, columns = len(wanted), len(given)
    least = [[0] * (columns + 1) for _ in range(rows + 1)]
    for i in range(rows, -1, -1):
        for j in range(columns, -1, -1):
            ways = []
            if i < rows and j < columns:
                ways.append(least[i + 1][j + 1] + (wanted[i] != given[j]))
            if i < rows:
                ways.append(least[i + 1][j] + 1)
            if j < columns:
                ways.append(least[i][j + 1] + 1)
            least[i][j] = min(ways, default=0)
    return least


def _hint(wanted: Sequence[int], given: Sequence[int]) -> str | None:
    rest = wanted[len(given) :]
    if rest and list(wanted[: len(given)]) == list(given) and set(rest) == {_POINTER}:
        nulls = ", ".join(["conventions.NULL"] * len(rest))
        return (
            f"compilers add hidden pointers at the end: where these are such, and are not used, "
            f"end the list with {nulls}"
        )
    if len(wanted) == len(given):
        first = next(size for size, other in zip(wanted, given, strict=True) if size != other)
        if first in _BY_SIZE:
            return (
                f"convert a number to the kernel's type, such as conventions.cast(value, "
                f'"{_BY_SIZE[first]}") for {first} bytes'
            )
    return None
