"""What a call checks of each argument, in words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ferrule.specs import Signature, Sym, format_dim
from ferrule.specs.deferred import dataclass
from ferrule.specs.params import EnvStream, NoneValue, Param, Scalar, Tensor
from ferrule.specs.text import short_param

_NO_CHECK: Final = (EnvStream, NoneValue)


@dataclass(frozen=True, slots=True)
class Checked:
    """A parameter as text, and what a call checks of its argument."""

    param: str
    checks: tuple[str, ...]


def checks_of(signature: Signature) -> Iterator[Checked]:
    """The checks of each parameter in order, and those of requirements last."""
    seen: set[Sym] = set()
    for param in signature.params:
        yield Checked(short_param(param, signature.symbols), tuple(_of(param, signature, seen)))
    required = tuple(each.text(signature.known) for each in signature.requires)
    if required:
        yield Checked("requirements", required)


def _of(param: Param, signature: Signature, seen: set[Sym]) -> Iterator[str]:
    match param:
        case Tensor():
            yield from _of_tensor(param, signature, seen)
        case Scalar(dtype=dtype):
            yield f"a number, in the range of {dtype.name}"
        case _ if isinstance(param, _NO_CHECK):
            return
        case _:
            yield "kind of the argument, and of what it holds"


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
            yield f"stride[{axis}] == {format_dim(dim, names)}"
    yield f"address a multiple of {tensor.align} bytes"
    if not tensor.read_only:
        yield "not read-only"


def _facts(symbol: Sym) -> str:
    """What a size must keep besides: its type, divisor and bounds."""
    found = [f"an int{symbol.width}"]
    if symbol.divisibility > 1:
        found.append(f"divisible by {symbol.divisibility}")
    if symbol.bounds:
        found.append(f"in {symbol.bounds}")
    return f" ({', '.join(found)})"
