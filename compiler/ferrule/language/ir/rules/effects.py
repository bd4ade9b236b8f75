"""The verifier's rules for stores, checks, prints, launches and results, which have no result
value.

Their text is in the docstring of `verifier`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from ferrule.compiler.artefacts import MAX_FAULT_VALUES
from ferrule.language.ir import ops
from ferrule.language.ir.rules import tensors as tensor_rules
from ferrule.language.ir.rules.checker import Checker
from ferrule.language.ir.scalars import BITS
from ferrule.language.ir.types import HandleType, TensorType, Type, result_types
from ferrule.specs import Boolean, DType, Float64, Int32, Int64, Uint64

CONVERSION: Final = re.compile(r"%(?:%|[-+ #0]*\d*(?:\.(?:\d+|\*))?((?:ll)?[a-zA-Z]))")
"""A conversion after `%` in the format of a Print; the group is a length and a letter."""
PRINTED: Final[dict[str, DType]] = {
    "s": Boolean,
    "lld": Int64,
    **dict.fromkeys(("llu", "llx", "llX", "llo"), Uint64),
    **dict.fromkeys("eEfFgGaA", Float64),
}

Effect = ops.Store | ops.Check | ops.Print | ops.Launch | ops.Return | ops.Define


def effect(checker: Checker, op: Effect, program: ops.Program) -> None:
    """Checks an op without a result, of a function of the program."""
    match op:
        case ops.Store(tensor, indices, value):
            tensor_rules.element(checker, tensor, indices, value)
        case ops.Check(condition, _, values):
            checker.types([condition], [Boolean], "conditions")
            checker.require(len(values) <= MAX_FAULT_VALUES, "a fault has too many values")
            for value in values:
                checker.scalar(value, BITS, "the value of a fault")
        case ops.Print(format_, values):
            _print(checker, format_, values)
        case ops.Return():
            _return(checker, op, program)
        case ops.Launch():
            _launch(checker, op, program)
        case ops.Define(symbol, value):
            checker.require(symbol in program.made, "a Define is of a made symbol")
            checker.types([value], [Int64], "the value of a Define")


def _print(checker: Checker, format_: str, values: Sequence[ops.Value]) -> None:
    wanted: list[Type | None] = []
    for found in CONVERSION.finditer(format_):
        if found[0].endswith(".*s"):
            wanted += [Int32, HandleType("bytes")]
        elif found[0] != "%%":
            wanted.append(PRINTED.get(found[1]))
    checker.require(len(wanted) == len(values), "a Print has a conversion for each value")
    for type_, value in zip(wanted, values, strict=True):
        checker.require(value.type == type_, "a Print has the type of a conversion")


def _return(checker: Checker, op: ops.Return, program: ops.Program) -> None:
    checker.require(op is program.host.body.ops[-1], "a Return is the last op")
    wanted = () if program.result is None else result_types(program.result)
    checker.types(op.values, wanted, "the parts of the result")


def _launch(checker: Checker, op: ops.Launch, program: ops.Program) -> None:
    checker.types((*op.grid, *op.block), [Int64] * 6, "the sizes of a launch")
    known = any(kernel.name == op.kernel for kernel in program.kernels)
    checker.require(known, f"there is no kernel @{op.kernel}")
    params = [param.type for param in program.kernel(op.kernel).params]
    checker.types(op.arguments, params, "the arguments of a launch")
    tensors = [type_ for type_ in params if isinstance(type_, TensorType)]
    inside = any(type_.is_own or type_.is_shared for type_ in tensors)
    checker.require(not inside, "a launch takes no tensor in registers or shared memory")
    stream = None if op.stream is None else op.stream.type
    checker.require(stream in (None, HandleType("stream")), "a launch is put on a stream")
    smem = Int64 if op.smem is None else op.smem.type
    checker.require(smem is Int64, "the shared memory of a launch is an Int64")
    _attributes(checker, op)


def _attributes(checker: Checker, op: ops.Launch) -> None:
    checker.types(op.cluster, [Int64] * (3 if op.cluster else 0), "the cluster of a launch")
    priority = Int32 if op.priority is None else op.priority.type
    checker.require(priority is Int32, "the priority of a launch is an Int32")
    events = (op.completion_event, op.programmatic_event)
    kinds = {event.type for event in events if event is not None}
    checker.require(kinds <= {HandleType("pointer")}, "an event of a launch is a pointer")
