"""The entry of the lowering: a host function and its signature become a `Program`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ferrule.language.ir import ops
from ferrule.language.ir.cleanup import remove_unused
from ferrule.language.ir.types import TensorType
from ferrule.language.lowering.context import Frame, Lowering, ProgramState
from ferrule.language.lowering.expressions import evaluate
from ferrule.language.lowering.statements import execute
from ferrule.language.source import read_source
from ferrule.language.values import Number, TensorView
from ferrule.specs import Param, Scalar, Signature, Tensor


def lower_program(
    function: Callable[..., Any], signature: Signature, constants: Mapping[str, Any]
) -> ops.Program:
    """Lowers a host function whose run-time parameters are those of `signature`.

    `constants` holds the parameters that are known at compile time.  Raises CompileError.
    """
    source = read_source(function)
    state = ProgramState(dict(signature.symbols))
    params = tuple(ops.Value(_type_of(param), param.name) for param in signature.params)
    names: dict[str, Any] = dict(constants)
    for value in params:
        names[value.hint] = (
            TensorView(value, value.hint) if isinstance(value.type, TensorType) else Number(value)
        )
    low = Lowering("host", state, Frame(source, names), evaluate, execute)
    with low.builder.region() as region:
        returned = low.execute(source.node.body)  # type: ignore[arg-type]
    if returned is not None and returned.value is not None:
        low.fail(
            source.node,
            f"{source.name} returns a value, but a host function returns nothing yet",
            hint="write results to a tensor that the caller passes",
        )
    host = ops.Function(signature.name, "host", params, region.freeze())
    kernels = tuple(state.kernels.values())
    program = ops.Program(signature.name, kernels, host, state.symbols, tuple(state.relations))
    return remove_unused(program)


def _type_of(param: Param) -> TensorType | Any:
    match param:
        case Tensor(_, shape, dtype, strides, _, align):
            return TensorType(dtype, shape, strides, align)
        case Scalar(_, dtype):
            return dtype
