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
    Arguments,
    ConstantArgument,
    IntegerArgument,
    PointerArgument,
)
from ferrule.frontends.triton.installed import kernel_of, triton
from ferrule.frontends.triton.launching import Candidate, convention
from ferrule.frontends.triton.offline import Wanted, compile_offline
from ferrule.frontends.triton.specialise import specialisations
from ferrule.specs import Signature, Tensor
from ferrule.specs.deferred import dataclass

if TYPE_CHECKING:
    from ferrule.compiler.conventions.protocol import CallingConvention

_BLOCK: Final = 1024


@dataclass(frozen=True, slots=True)
class Fill:
    """A tensor whose elements are all set to a number."""

    tensor: Tensor
    value: int | float


def filling(name: str, fill: Fill, archs: Sequence[int]) -> CallingConvention:
    """The convention that fills a tensor on the stream of the call.

    Raises CompileError for a tensor that is not compact: the memory between its rows belongs to
    others.
    """
    tensor = fill.tensor
    if not is_compact(tensor):
        raise CompileError(
            Diagnostic(
                f"{name}: {tensor.name} is to be filled, but its strides are those of a view",
                hint="fill it in a function around this one, or give it an example that is compact",
            )
        )
    kernel = kernel_of(_kernel())
    given = (
        PointerArgument("to", tensor, 16 if tensor.align >= 16 else None),
        IntegerArgument("n", tensor.numel),
        ConstantArgument("VALUE", fill.value),
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


def _kernel() -> Any:
    language = packages.load("triton.language", "triton")
    function = FunctionType(fill.__code__, {**globals(), "tl": language}, "fill")
    return triton().jit(function)
