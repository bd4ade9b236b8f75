"""The parameters of a kernel in its binary, and the check that a launch matches them.

A launch passes the driver a list of addresses and nothing more: a missing, extra or wrongly sized
parameter is no error there, and the kernel reads garbage.  So the list is checked here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.specs.deferred import dataclass

Dims: TypeAlias = "tuple[int, int, int]"

_POINTER: Final = 8
_BY_SIZE: Final = {1: "int8", 2: "int16", 4: "int32", 8: "int64"}


@dataclass(frozen=True, slots=True)
class KernelParameter:
    """A parameter: its offset in the parameter space and its size, both in bytes.

    `align` is None if the binary does not have it: a cubin does not.  Offsets in PTX are relative
    to a space that begins at 0.  On the machine it begins at an address that is aligned to 16 or
    32, so parameters with a larger alignment, such as tensor maps, can have other offsets in a
    cubin: therefore sizes are compared.
    """

    offset: int
    size: int
    align: int | None = None


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable in GPU memory, `__device__` or `__constant__`: its bytes, whether the binary has
    an initial value other than 0, whether kernels cannot write it, and whether the kernel uses it
    (None if unknown)."""

    name: str
    size: int
    is_set: bool
    is_constant: bool
    is_used: bool | None = None


@dataclass(frozen=True, slots=True)
class KernelParameters:
    """The facts about a kernel in a binary for one architecture.

    `required_block` is the only block size for launches (PTX's `.reqntid`), `max_block` a block
    size with the largest number of threads (`.maxntid`), `cluster` the cluster size
    (`.reqnctapercluster`); None if it has none.  `static_shared` is its static shared memory in
    bytes; for PTX, the part that the text shows.  `registers` is known only for a cubin.
    `variables` are those of the module; a cubin does not show which of them the kernel uses.
    `dynamic_shared`: it uses shared memory whose size the launch sets, which a cubin does not show.
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
        """The bytes of all parameters, with the gaps between them."""
        if not self.parameters:
            return 0
        return self.parameters[-1].offset + self.parameters[-1].size

    def __str__(self) -> str:
        return f"kernel {self.kernel} of {self.arch}"


def check_packed(kernel: KernelParameters, packed: Sequence[tuple[int, str]]) -> None:
    """Raise CompileError unless a kernel takes these parameters: the bytes of each, and its
    description."""
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
    """A minimal list of the missing, extra and wrongly sized parameters, in order."""
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
    """At [i][j], the smallest number of differences after the first i and j parameters."""
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
