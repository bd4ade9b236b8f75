"""In the process of MLIR: the launches of a host function, as data.

A function that launches kernels must be straight-line code: launches, and the arithmetic of their
sizes.  Any other operation would have to run on the host, and is an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

from ferrule.compiler.errors import CompileError
from ferrule.compiler.mlir.session import Session
from ferrule.frontends.mlir.expressions import (
    PURE,
    ArgumentValue,
    Expression,
    expression,
    refused,
)
from ferrule.frontends.mlir.reading import attribute, symbol
from ferrule.specs.deferred import dataclass

Sizes: TypeAlias = "tuple[Expression, Expression, Expression]"

_LAUNCH: Final = "gpu.launch_func"
_IGNORED: Final = ("func.return", "gpu.wait")
_SEGMENTS: Final = "operandSegmentSizes"
_VALUES: Final = ("arith.", "index.", "math.")
_KERNEL_MARKS: Final = ("nvvm.kernel", "gpu.kernel")


@dataclass(frozen=True, slots=True)
class Operand:
    """An argument of a kernel: a value, and the MLIR name of its type; `rank` is that of a
    memref."""

    value: Expression
    kind: str
    rank: int | None = None


@dataclass(frozen=True, slots=True)
class Launch:
    """A launch of the kernel `kernel`, a pair (module, function).

    `name` is the kernel's name in the code that is compiled from all modules.
    """

    kernel: tuple[str, str]
    grid: Sizes
    block: Sizes
    cluster: Sizes | None
    smem: Expression
    operands: tuple[Operand, ...]
    name: str = ""


def launches_of(session: Session, function: Any) -> tuple[Launch, ...]:
    """The launches of a function in order.  Raises CompileError for any other operation in it."""
    blocks = list(function.regions[0].blocks)
    if len(blocks) != 1:
        raise CompileError(
            f"@{symbol(function)} launches kernels and branches: give a launch a grid of 0 blocks "
            f"where there is to be none"
        )
    found = []
    for each in blocks[0].operations:
        operation = each.operation
        if operation.name == _LAUNCH:
            found.append(_launch(session, operation))
        elif operation.name not in _IGNORED and not _is_unused(operation):
            raise refused(session, operation)
        elif operation.name == "func.return" and len(operation.operands):
            raise refused(session, operation, "it can return nothing")
    return tuple(found)


def _is_unused(operation: Any) -> bool:
    """Whether an operation has no effect by itself: its value is evaluated where it is used."""
    return operation.name in PURE or operation.name.startswith(_VALUES)


def _launch(session: Session, operation: Any) -> Launch:
    kernel = tuple(session.ir.SymbolRefAttr(operation.attributes["kernel"]).value)
    if len(kernel) != 2:
        raise refused(session, operation, "its kernel is in no gpu.module of this module")
    _, *groups = _segments(operation)
    sizes = [expression(session, each) for group in groups[:6] for each in group]
    cluster = [expression(session, each) for group in groups[6:9] for each in group]
    smem = [expression(session, each) for each in groups[9]]
    operands = tuple(_operand(session, operation, each) for each in groups[10])
    x, y, z, *block = sizes
    return Launch(
        (str(kernel[0]), str(kernel[1])),
        (x, y, z),
        _three(block),
        _three(cluster) if cluster else None,
        smem[0] if smem else 0,
        operands,
    )


def _three(sizes: list[Expression]) -> Sizes:
    x, y, z = sizes
    return x, y, z


def _segments(operation: Any) -> Iterator[list[Any]]:
    """The operands in groups: asynchronous dependencies, three sizes of the grid, three of the
    block, three of the cluster, dynamic shared memory, operands of the kernel, the stream."""
    operands, start = list(operation.operands), 0
    for size in operation.attributes[_SEGMENTS]:
        yield operands[start : start + int(size)]
        start += int(size)


def _operand(session: Session, operation: Any, value: Any) -> Operand:
    kind, found = value.type, expression(session, value)
    if isinstance(kind, session.ir.MemRefType):
        if not isinstance(found, ArgumentValue):
            raise refused(session, operation, "a memref is no argument of the function")
        return Operand(found, str(kind), len(kind.shape))
    return Operand(found, str(kind))


def rename_kernels(module: Any) -> dict[tuple[str, str], str]:
    """Gives kernels of different modules different names, and returns these."""
    names: dict[tuple[str, str], str] = {}
    for gpu_module in module.body.operations:
        if gpu_module.operation.name != "gpu.module":
            continue
        for each in gpu_module.operation.regions[0].blocks[0].operations:
            inner = each.operation
            if any(attribute(inner, mark) is not None for mark in _KERNEL_MARKS):
                key = symbol(gpu_module.operation), symbol(inner)
                names[key] = _unused(key, set(names.values()))
                inner.attributes["sym_name"] = _string(inner, names[key])
    return names


def _unused(key: tuple[str, str], taken: set[str]) -> str:
    module, name = key
    return name if name not in taken else f"{module}_{name}"


def _string(operation: Any, text: str) -> Any:
    return type(operation.attributes["sym_name"]).get(text)
