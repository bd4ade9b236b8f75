"""What a host function reads of PyTorch's tensors while it is recorded: sizes, which are followed,
and numbers in them, which no recording can follow."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Any, Final

from ferrule.frontends import packages
from ferrule.frontends.triton.recorded.followed import (
    Compared,
    Followed,
    Log,
    Read,
    is_of_triton,
    place,
    plain,
)
from ferrule.frontends.triton.recorded.nodes import Leaf
from ferrule.frontends.triton.recorded.tensors import is_torch
from ferrule.specs.deferred import dataclass

_READS: Final = {
    "tolist": "the numbers",
    "numpy": "the numbers",
    "__array__": "the numbers",
    "__dlpack__": "the numbers",
    "data_ptr": "the address",
}
_FILLED: Final = frozenset(
    "empty empty_like empty_strided new_empty zeros zeros_like new_zeros ones ones_like new_ones "
    "full full_like new_full".split()
)
"""Functions that make tensors in which nothing but the shape follows from a size."""
_FILLED_WITH: Final = ("full", "full_like", "new_full", "fill_")


@dataclass(slots=True, eq=False)
class Reading:
    """The tensors that a host function has met.

    `names` are those that it was given, `others` those that it made, in their order, and `derived`
    the memory of those whose numbers follow from something that a caller gives, by its identity;
    `made` is that which it made.
    """

    log: Log = field(default_factory=Log)
    names: dict[int, str] = field(default_factory=dict)
    others: dict[int, int] = field(default_factory=dict)
    derived: set[int] = field(default_factory=set)
    made: set[int] = field(default_factory=set)
    kept: list[Any] = field(default_factory=list)

    def given(self, name: str, value: Any) -> Any:
        """An argument of the host function as it gets it."""
        if is_torch(value):
            self.names[id(value)] = name
            self.kept.append(value)
        elif type(value) is int:
            return self.log.size(Leaf(name, ""), value)
        return value

    def sizes(self, tensor: Any, kind: str, values: Sequence[int]) -> list[Followed]:
        """Sizes or strides of a tensor."""
        name = self.names.get(id(tensor)) or f"tensor {self._number(tensor)}"
        return [
            self.log.size(Leaf(f"{name} of {len(values)}", kind, axis), int(value))
            for axis, value in enumerate(values)
        ]

    def _number(self, tensor: Any) -> int:
        if id(tensor) not in self.others:
            self.others[id(tensor)] = len(self.others)
            self.kept.append(tensor)
        return self.others[id(tensor)]

    def read(self, what: str, tensor: Any) -> None:
        """Something of a tensor was read that sizes do not tell."""
        name = self.names.get(id(tensor), "a tensor")
        self.log.reads.append(Read(f"{what} of {name}", place()))

    def derive(self, tensors: Iterator[Any]) -> None:
        """The numbers in these tensors follow from something that a caller gives."""
        for each in tensors:
            self.derived.add(_storage(each))
            self.kept.append(each.untyped_storage())

    def is_derived(self, *tensors: Any) -> bool:
        """Whether the numbers in one of these tensors do."""
        return any(each in self.derived or each not in self.made for each in map(_storage, tensors))


def _storage(tensor: Any) -> int:
    return int(tensor.untyped_storage()._cdata)


def tensors_in(value: Any) -> Iterator[Any]:
    """The tensors in arguments or results of a function of PyTorch."""
    if isinstance(value, tuple | list):
        for each in value:
            yield from tensors_in(each)
    elif is_torch(value):
        yield value


def _has_sizes(value: Any) -> bool:
    if isinstance(value, tuple | list):
        return any(map(_has_sizes, value))
    return isinstance(value, Followed)


def functions_watched(reading: Reading) -> Any:
    """A context in which host functions get sizes of tensors that are followed, and in which their
    reads of tensors are noticed; also those of their backward functions."""
    torch = sys.modules.get("torch")
    if torch is None:
        return contextlib.nullcontext()
    base: Any = packages.load("torch.overrides", "torch").TorchFunctionMode

    class Mode(base):  # type: ignore[misc]
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            given, named = plain(tuple(args)), plain(dict(kwargs or {}))
            result = func(*given, **named)
            if is_of_triton():  # as of a descriptor, which checks its tensor
                return result
            return _noticed(torch, reading, func, (args, kwargs or {}), result)

    mode: Any = Mode
    return _with_backward(torch, mode())


@contextlib.contextmanager
def _with_backward(torch: Any, mode: Any) -> Iterator[None]:
    """The mode, also inside of backward functions, which PyTorch calls without it."""
    own: Any = getattr(torch.autograd, "_engine_run_backward", None)

    def run_backward(*args: Any, **kwargs: Any) -> Any:
        with mode:
            return own(*args, **kwargs)

    with contextlib.ExitStack() as undo:
        if own is not None:
            for module in (torch.autograd, torch.autograd.graph):
                undo.callback(setattr, module, "_engine_run_backward", own)
                module._engine_run_backward = run_backward
        undo.enter_context(mode)
        yield


def _noticed(torch: Any, reading: Reading, func: Any, given: Any, result: Any) -> Any:
    """The result of a function of PyTorch as a host function gets it."""
    args, kwargs = given
    name, first = getattr(func, "__name__", ""), args[0] if args else None
    if name in _FILLED_WITH:
        _hold(reading, kwargs.get("fill_value", kwargs.get("value", args[-1] if args else None)))
    if not is_torch(first):
        if name not in _FILLED and (_has_sizes(args) or _has_sizes(tuple(kwargs.values()))):
            reading.derive(tensors_in(result))
        return result
    if name == "__get__" and getattr(func, "__self__", None) is torch.Tensor.shape:
        return torch.Size(reading.sizes(first, "shape", result))
    if name in ("size", "stride"):
        return _asked(reading, first, "shape" if name == "size" else name, given, result)
    if name in ("numel", "nelement", "__len__"):
        axis = reading.sizes(first, "numel" if name != "__len__" else "len", [result])
        return axis[0]
    if name == "data_ptr" or (name in _READS and reading.is_derived(first)):
        reading.read(_READS[name], first)
    return result


def _hold(reading: Reading, value: Any) -> None:
    """A number that is made of sizes, and written into memory, is that of the recording."""
    if isinstance(value, Followed):
        held = Compared("eq", value.tree, int.__int__(value), True, place())
        reading.log.compared.append(held)


def _asked(reading: Reading, tensor: Any, kind: str, given: Any, result: Any) -> Any:
    """The result of `size` or `stride`: all of them, or one."""
    args, kwargs = given
    if isinstance(result, tuple):
        return type(result)(reading.sizes(tensor, kind, result))
    axis = args[1] if len(args) > 1 else kwargs.get("dim")
    rank = tensor.dim()
    if not isinstance(axis, int) or isinstance(result, list):
        return result
    values = tensor.shape if kind == "shape" else tensor.stride()
    return reading.sizes(tensor, kind, values)[int(axis) % rank]
