"""What a call checks of each argument, in words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from ferrule.specs.deferred import dataclass
from ferrule.specs.dtypes import DType
from ferrule.specs.expr import Sym, format_dim
from ferrule.specs.params import REQUIRED, EnvStream, NoneValue, Param, Scalar, Tensor
from ferrule.specs.text import short_param

if TYPE_CHECKING:
    from ferrule.specs.signature import Signature

_NO_CHECK: Final = (EnvStream, NoneValue)


@dataclass(frozen=True, slots=True)
class Checked:
    """A parameter as text, and what a call checks of its argument."""

    param: str
    checks: tuple[str, ...]


def checks_of(signature: Signature) -> Iterator[Checked]:
    """The checks of each parameter in order, and those of requirements last."""
    seen: set[Sym] = set()
    yield Checked(signature.name, (_count(signature), *_of_devices(signature)))
    for param in signature.params:
        yield Checked(short_param(param, signature.symbols), tuple(_of(param, signature, seen)))
    required = tuple(each.text(signature.known) for each in signature.requires)
    if required:
        yield Checked("requirements", required)


def _count(signature: Signature) -> str:
    needed = sum(param.default is REQUIRED for param in signature.arguments)
    most = len(signature.arguments)
    return f"{most} arguments" if needed == most else f"{needed} to {most} arguments"


def _of_devices(signature: Signature) -> Iterator[str]:
    on_gpu = [each for each in signature.params if isinstance(each, Tensor)]
    on_gpu = [each for each in on_gpu if each.device not in (None, "cpu")]
    if len(on_gpu) > 1:
        yield "tensors of one device on one and the same, cuda:0 or another"


def _of(param: Param, signature: Signature, seen: set[Sym]) -> Iterator[str]:
    match param:
        case Tensor():
            yield from _of_tensor(param, signature, seen)
        case Scalar(dtype=dtype):
            yield _number(dtype)
        case _ if isinstance(param, _NO_CHECK):
            return
        case _:
            yield "kind of the argument, and of what it holds"


def _number(dtype: DType) -> str:
    match dtype.kind:
        case "bool":
            return "True, False, 0 or 1"
        case "int" | "uint":
            return f"an int that fits {dtype.name}"
    return f"a number; it is rounded to {dtype.name}"


def _of_tensor(tensor: Tensor, signature: Signature, seen: set[Sym]) -> Iterator[str]:
    names = signature.symbols
    yield f"a tensor of rank {len(tensor.shape)}"
    yield f"dtype {tensor.expected or tensor.dtype.name}"
    device = tensor.device or "the target's"
    yield f"device {device}" + ("" if tensor.device_id is None else f":{tensor.device_id}")
    for axis, dim in enumerate(tensor.shape):
        shown = format_dim(dim, names)
        if isinstance(dim, Sym) and dim not in seen:
            seen.add(dim)
            yield f"shape[{axis}] gives {shown}{_facts(dim)}"
        else:
            yield f"shape[{axis}] == {shown}"
    for axis, dim in enumerate(tensor.strides):
        if isinstance(dim, Sym) and dim not in seen:
            seen.add(dim)
            yield f"stride[{axis}] gives {format_dim(dim, names)}{_facts(dim)}"
        else:
            where = "" if axis in tensor.exact_strides else f", where shape[{axis}] is not 1"
            yield f"stride[{axis}] == {format_dim(dim, names)}{where}"
    yield f"address a multiple of {tensor.align} bytes, unless it is empty"
    if not tensor.read_only:
        yield "not read-only"


def _facts(symbol: Sym) -> str:
    """What a size must keep besides: its type, divisor and bounds."""
    found = [f"an int{symbol.width}"]
    if symbol.divisibility > 1:
        found.append(f"divisible by {symbol.divisibility}")
    if symbol.bounds:
        bounds = ((">=", symbol.min), ("<=", symbol.max))
        found += [f"{sign} {bound}" for sign, bound in bounds if bound is not None]
    return f" ({', '.join(found)})"
