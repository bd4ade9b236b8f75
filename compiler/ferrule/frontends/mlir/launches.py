"""In the process of MLIR: the launches of a host function, as data.

A function that launches kernels consists of launches, the branches, counted loops and assertions
around them, and the arithmetic of integers that decides them.  Any other operation would have to
run on the host, and is an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, TypeAlias

from typing_extensions import assert_never

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.compiler.mlir.session import Session
from ferrule.frontends.mlir.conditions import Test, condition
from ferrule.frontends.mlir.expressions import (
    LOOP,
    PURE,
    ArgumentValue,
    Expression,
    depth_of,
    expression,
    refused,
)
from ferrule.frontends.mlir.kinds import vector
from ferrule.frontends.mlir.reading import attribute, symbol
from ferrule.specs.deferred import dataclass

Sizes: TypeAlias = "tuple[Expression, Expression, Expression]"

_IGNORED: Final = ("gpu.wait",)
_ENDS: Final = ("func.return", "scf.yield")
_SEGMENTS: Final = "operandSegmentSizes"
_VALUES: Final = ("arith.", "index.", "math.")
_KERNEL_MARKS: Final = ("nvvm.kernel", "gpu.kernel")


@dataclass(frozen=True, slots=True)
class Operand:
    """An argument of a kernel: a value, and the MLIR name of its type; `rank` is that of a memref,
    `inner` that of the vectors in it."""

    value: Expression
    kind: str
    rank: int | None = None
    inner: int = 0


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


@dataclass(frozen=True, slots=True)
class Assertion:
    """A `cf.assert`: an error of the call with this message unless a condition holds."""

    condition: Test
    message: str


@dataclass(frozen=True, slots=True)
class Branch:
    """Steps that are executed if a condition holds, and those that are executed otherwise."""

    condition: Test
    steps: Steps
    otherwise: Steps


@dataclass(frozen=True, slots=True)
class Loop:
    """Steps that are executed for each number from `start` on, below `stop`; `depth` as for
    `LoopValue`."""

    depth: int
    start: Expression
    stop: Expression
    step: Expression
    steps: Steps


Step: TypeAlias = "Launch | Assertion | Branch | Loop"
Steps: TypeAlias = "tuple[Step, ...]"


def launches_in(steps: Steps) -> Iterator[Launch]:
    """The launches among steps, at any depth."""
    for each in steps:
        match each:
            case Launch():
                yield each
            case Branch(_, inner, otherwise):
                yield from launches_in((*inner, *otherwise))
            case Loop():
                yield from launches_in(each.steps)


def named(steps: Steps, names: Mapping[tuple[str, str], str]) -> Steps:
    """The steps with the names that their kernels have in the code compiled from all modules."""
    return tuple(_named(each, names) for each in steps)


def _named(step: Step, names: Mapping[tuple[str, str], str]) -> Step:
    match step:
        case Launch():
            return replace(step, name=names[step.kernel])
        case Branch():
            inner, otherwise = named(step.steps, names), named(step.otherwise, names)
            return replace(step, steps=inner, otherwise=otherwise)
        case Loop():
            return replace(step, steps=named(step.steps, names))
        case Assertion():
            return step
        case _:
            assert_never(step)


def steps_of(session: Session, function: Any) -> Steps:
    """The launches of a function in order, with the branches, loops and assertions around them.

    Raises CompileError for any other operation in it.
    """
    blocks = list(function.regions[0].blocks)
    if len(blocks) != 1:
        raise CompileError(
            f"@{symbol(function)} launches kernels and jumps between blocks: write its branches "
            "and loops with scf.if and scf.for"
        )
    return _steps(session, blocks[0])


def _steps(session: Session, block: Any) -> Steps:
    operations = [each.operation for each in block.operations]
    return tuple(step for each in operations for step in _step(session, each))


def _step(session: Session, operation: Any) -> Iterator[Step]:
    match operation.name:
        case "gpu.launch_func":
            yield _launch(session, operation)
        case "cf.assert":
            yield _assertion(session, operation)
        case "scf.if":
            yield _branch(session, operation)
        case name if name == LOOP:
            yield _loop(session, operation)
        case name if name in _ENDS and len(operation.operands):
            where = "it can return nothing" if name == "func.return" else "it gives values"
            raise refused(session, operation, where)
        case name if name not in (*_IGNORED, *_ENDS) and not _is_unused(operation):
            raise refused(session, operation)


def _assertion(session: Session, operation: Any) -> Assertion:
    message = str(operation.attributes["msg"].value)
    try:
        return Assertion(condition(session, operation.operands[0]), message)
    except CompileError as error:
        raise CompileError(
            Diagnostic(
                "the function launches kernels, and asserts something that no host code decides",
                session.place(operation),
                expected="comparisons of integers that are made of its arguments by arithmetic",
                notes=(error.diagnostic.message,),
                hint="asserts=False leaves assertions out, and does what they forbid",
            )
        ) from None


def _branch(session: Session, operation: Any) -> Branch:
    then, otherwise = (list(region.blocks) for region in operation.regions)
    return Branch(
        condition(session, operation.operands[0]),
        _steps(session, then[0]),
        _steps(session, otherwise[0]) if otherwise else (),
    )


def _loop(session: Session, operation: Any) -> Loop:
    if len(operation.results) or attribute(operation, "unsignedCmp") is not None:
        has = "carries values" if len(operation.results) else "compares without signs"
        raise refused(session, operation, f"it {has}")
    start, stop, step = (expression(session, each) for each in list(operation.operands)[:3])
    steps = _steps(session, operation.regions[0].blocks[0])
    return Loop(depth_of(operation), start, stop, step, steps)


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
        vectors = vector(str(kind.element_type))
        return Operand(found, str(kind), len(kind.shape), len(vectors[0]) if vectors else 0)
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
