"""In the process of MLIR: a kernel of a `gpu.module`, which a call launches without a host
function."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, TypeAlias

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.compiler.mlir.session import Session
from ferrule.frontends.mlir.conditions import Compared
from ferrule.frontends.mlir.expressions import ArgumentValue
from ferrule.frontends.mlir.kinds import Buffer, FunctionType
from ferrule.frontends.mlir.launches import (
    Assertion,
    Branch,
    Launch,
    Loop,
    Operand,
    Sizes,
    Step,
    Steps,
)
from ferrule.frontends.mlir.reading import attribute, kernels_of, symbol
from ferrule.specs.deferred import dataclass

Three: TypeAlias = "tuple[int, int, int]"

_ONE: Final = (1, 1, 1)


def find_kernel(module: Any, name: str | None) -> Any:
    """The kernel of this name, `kernel` or `module::kernel`; without a name, the only one.

    Raises CompileError if there is none, or if there are several to choose from.
    """
    kernels = {_path(each): each for each in _kernels(module)}
    wanted = None if name is None else name.replace("@", "")
    found = [
        path
        for path in kernels
        if wanted is None or path == wanted or path.partition("::")[2] == wanted
    ]
    if len(found) != 1:
        which = "kernels" if name is None else f"kernels {name}"
        raise CompileError(
            Diagnostic(
                f"the module has {len(found)} {which}, of which grid= and block= launch one",
                expected="one, or its name: function='module::kernel'",
                notes=(f"there are {', '.join(kernels) or 'none at all'}",),
            )
        )
    return kernels[found[0]]


def _kernels(module: Any) -> Iterator[Any]:
    for each in module.body.operations:
        if each.operation.name == "gpu.module":
            yield from kernels_of(each.operation)


def _path(kernel: Any) -> str:
    return f"{symbol(kernel.parent.operation)}::{symbol(kernel)}"


@dataclass(frozen=True, slots=True)
class Known:
    """The sizes of a launch that a kernel is compiled for, None for any: MLIR folds them into its
    code, so that any other launch gives wrong results."""

    grid: Three | None = None
    block: Three | None = None


def known_sizes(session: Session, kernel: Any) -> Known:
    """What `gpu.known_grid_size` and `gpu.known_block_size` say of a kernel."""
    return Known(*(_size(session, kernel, f"known_{each}_size") for each in ("grid", "block")))


def _size(session: Session, kernel: Any, name: str) -> Three | None:
    for each in (name, f"gpu.{name}"):
        given = attribute(kernel, each)
        if given is not None:
            x, y, z = (int(size) for size in session.ir.DenseI32ArrayAttr(given))
            return x, y, z
    return None


def all_known(session: Session, module: Any) -> dict[tuple[str, str], Known]:
    """What the kernels of a module are compiled for, by their modules and names."""
    return {
        (symbol(each.parent.operation), symbol(each)): known_sizes(session, each)
        for each in _kernels(module)
    }


def held_to(steps: Steps, known: Mapping[tuple[str, str], Known]) -> Steps:
    """The steps with assertions that launches have the sizes that their kernels are compiled for.

    Raises CompileError for constants that are others.
    """
    return tuple(each for step in steps for each in _held(step, known))


def _held(step: Step, known: Mapping[tuple[str, str], Known]) -> Iterator[Step]:
    match step:
        case Launch():
            found = known.get(step.kernel, Known())
            for what, wanted, sizes in (
                ("grid", found.grid, step.grid),
                ("block", found.block, step.block),
            ):
                if wanted is not None and wanted != sizes:
                    yield from _asserted(f"the {what} of @{step.kernel[1]}", wanted, sizes)
        case Branch():
            inner, otherwise = held_to(step.steps, known), held_to(step.otherwise, known)
            step = replace(step, steps=inner, otherwise=otherwise)
        case Loop():
            step = replace(step, steps=held_to(step.steps, known))
        case Assertion():
            pass
    yield step


def _asserted(what: str, wanted: Three, sizes: Sizes) -> Iterator[Assertion]:
    for number, size in zip(wanted, sizes, strict=True):
        said = f"{what} must be {wanted}, for which it is compiled"
        if isinstance(size, int) and size != number:
            raise CompileError(f"{said}, but got {sizes}")
        if size != number:
            yield Assertion(Compared("eq", size, number), said)


def launch_of(kernel: Any, kind: FunctionType) -> Launch:
    """A launch of a kernel with the arguments of the call; the caller knows its sizes."""
    operands = tuple(
        Operand(ArgumentValue(position), str(type_), *_ranks(each))
        for position, (type_, each) in enumerate(
            zip(kernel.attributes["function_type"].value.inputs, kind.arguments, strict=True)
        )
    )
    where = symbol(kernel.parent.operation), symbol(kernel)
    return Launch(where, _ONE, _ONE, None, 0, operands)


def _ranks(kind: object) -> tuple[int | None, int]:
    """The rank of a memref, and that of the vectors in it."""
    return (len(kind.shape) - kind.inner, kind.inner) if isinstance(kind, Buffer) else (None, 0)
