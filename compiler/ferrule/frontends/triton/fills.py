"""Tensors that are filled before a launch, by a kernel of this module, which is compiled like any
other."""

from __future__ import annotations

from collections.abc import Sequence
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final

from ferrule import specs
from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.frontends import packages
from ferrule.frontends.examples import is_compact
from ferrule.frontends.triton.arguments import (
    Argument,
    Arguments,
    ConstantArgument,
    IntegerArgument,
    NumberArgument,
    PointerArgument,
)
from ferrule.frontends.triton.installed import kernel_of, triton
from ferrule.frontends.triton.launching import Candidate, convention
from ferrule.frontends.triton.offline import Wanted, compile_offline
from ferrule.frontends.triton.specialise import specialisations
from ferrule.specs import Signature, Tensor
from ferrule.specs.conditions import FloatExpr
from ferrule.specs.deferred import dataclass

if TYPE_CHECKING:
    from ferrule.compiler.conventions.protocol import CallingConvention

_BLOCK: Final = 1024


@dataclass(frozen=True, slots=True)
class Fill:
    """A tensor whose elements are all set to a number, or to one that is computed in the call."""

    tensor: Tensor
    value: int | float | FloatExpr


def filling(name: str, wanted: Fill, archs: Sequence[int]) -> CallingConvention:
    """The convention that fills a tensor on the stream of the call.

    Raises CompileError for a tensor that is not compact: the memory between its rows belongs to
    others.
    """
    tensor = wanted.tensor
    if not is_compact(tensor):
        raise CompileError(
            Diagnostic(
                f"{name}: {tensor.name} is to be filled, but its strides are those of a view",
                hint="fill it in a function around this one, or give it an example that is compact",
            )
        )
    is_known = isinstance(wanted.value, int | float)
    kernel = kernel_of(_kernel(fill if is_known else filled))
    value: Argument = (
        ConstantArgument("VALUE", wanted.value)
        if is_known
        else NumberArgument("value", wanted.value)
    )
    given = (
        PointerArgument("to", tensor, 16 if tensor.align >= 16 else None),
        IntegerArgument("n", tensor.numel),
        value,
        ConstantArgument("BLOCK", _BLOCK),
    )
    arguments = Arguments(Signature(name, ()), (), given)
    ((only,), _) = specialisations(kernel, arguments, [{}])
    (compiled,) = compile_offline(kernel, [Wanted(only, {})], archs)
    grid = specs.ceil_div(tensor.numel, _BLOCK), 1, 1
    return convention(name, [Candidate(only, compiled, grid)], whole=True)


tl: Any = None  # Triton's language, in the copy of the function that Triton compiles


def fill(to, n, VALUE, BLOCK):  # type: ignore[no-untyped-def]
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(to + at, tl.full([BLOCK], VALUE, to.dtype.element_ty), mask=at < n)


def filled(to, n, value, BLOCK):  # type: ignore[no-untyped-def]
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    number = value
    if to.dtype.element_ty.primitive_bitwidth < 64:  # PyTorch rounds to a float32 first
        number = value.to(tl.float32)
    tl.store(to + at, tl.full([BLOCK], number, to.dtype.element_ty), mask=at < n)


def _kernel(of: Any) -> Any:
    language = packages.load("triton.language", "triton")
    function = FunctionType(of.__code__, {**globals(), "tl": language}, of.__name__)
    if "value" in of.__code__.co_varnames:
        function.__annotations__ = {"value": "fp64"}
    return triton().jit(function)
