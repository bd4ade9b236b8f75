"""Functions of PyTorch while a host function is recorded: the sizes that it gets of them are
followed, and its reads of numbers in tensors are noticed."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from typing import Any, Final

from ferrule.frontends import packages
from ferrule.frontends.triton.recorded.forms import product
from ferrule.frontends.triton.recorded.log import is_of_triton
from ferrule.frontends.triton.recorded.nodes import Tree
from ferrule.frontends.triton.recorded.numbers.base import Number, plain
from ferrule.frontends.triton.recorded.numbers.floats import Float
from ferrule.frontends.triton.recorded.reading import Reading, tensors_in
from ferrule.frontends.triton.recorded.shaping import is_contiguous, name_of, shaped, taken
from ferrule.frontends.triton.recorded.tensors import Shape, is_torch

_READS: Final = {
    "tolist": "the numbers",
    "numpy": "the numbers",
    "__array__": "the numbers",
    "__dlpack__": "the numbers",
    "__repr__": "the numbers",
    "data_ptr": "the address",
    "__cuda_array_interface__": "the address",
    "is_set_to": "the memory",
    "_is_view": "the memory",
    "_base": "the memory",
}
_SHARES: Final = ("numpy", "__array__", "__dlpack__")
_ADDRESSES: Final = ("data_ptr", "__cuda_array_interface__")
_MEMORY: Final = ("untyped_storage", "storage", "_typed_storage", "set_")
"""Functions that give the memory of a tensor, which has a size of its own."""
_FILLED: Final = frozenset(
    "empty empty_like empty_strided new_empty zeros zeros_like new_zeros ones ones_like new_ones "
    "full full_like new_full".split()
)
"""Functions that make tensors in which nothing but the shape follows from a size."""
_FILLED_WITH: Final = ("full", "full_like", "new_full", "fill_")


def _has_sizes(value: Any) -> bool:
    if isinstance(value, tuple | list):
        return any(map(_has_sizes, value))
    return isinstance(value, Number)


def functions_watched(reading: Reading) -> Any:
    """A context in which host functions and their backward functions get sizes that are followed,
    and in which each of their reads of a tensor is noticed."""
    torch = sys.modules.get("torch")
    if torch is None:
        return contextlib.nullcontext()
    base: Any = packages.load("torch.overrides", "torch").TorchFunctionMode

    class Mode(base):  # type: ignore[misc]
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            reading.log.forgive(sys._getframe(1))
            given, named = plain(tuple(args)), plain(dict(kwargs or {}))
            number = _filled_with(name_of(func), args, kwargs or {})
            reading.filling = _tree_of_float(number)
            reading.refilled.clear()
            try:
                result = func(*given, **named)
            except Exception:  # who catches it decides by what was given
                taken([*args, *(kwargs or {}).values()], reading)
                raise
            finally:
                reading.filling = None
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
    name: str = name_of(func)
    first: Any = args[0] if args else None
    shaped(reading, name, args, kwargs, result)
    if reading.refilled:
        _filled(reading, name, args, kwargs)
    if name in _FILLED and is_torch(result):
        reading.shape(result, _sizes_of(reading, name, args, kwargs))
    value = _filled_with(name, args, kwargs)
    if isinstance(value, Number) and _tree_of_float(value) is None:
        reading.hold(value)  # what is written into memory is that of the recording
    if not is_torch(first):
        if name not in _FILLED and (_has_sizes(args) or _has_sizes(tuple(kwargs.values()))):
            reading.derive(tensors_in(result))
        return result
    if name == "shape":
        return Shape(reading.sizes(first, "shape", result))
    if name in ("size", "stride"):
        return _asked(reading, first, "shape" if name == "size" else name, given, result)
    if name in ("numel", "nelement", "__len__"):
        shape = reading.sizes(first, "shape", first.shape)
        return shape[0] if name == "__len__" else product(shape)
    if name == "nbytes":
        return product(reading.sizes(first, "shape", first.shape)) * first.element_size()
    if name == "is_contiguous":
        if len(args) == 1 and not kwargs:
            return is_contiguous(reading, first)
        reading.pin(first)  # in an order of dims that nobody follows
    if name == "storage_offset":
        return _offset(reading, first, result)
    if name in _MEMORY:
        _take_memory(reading, first)
    if name in _ADDRESSES or (name in _READS and reading.is_derived(first)):
        reading.read(_READS[name], first)
    elif name in _SHARES:  # who has the memory may write to it, and nobody sees that
        reading.share(first, name)
    return result


def _filled(reading: Reading, name: str, args: Any, kwargs: Any) -> None:
    """A function has filled all of a memory: so it does in a call."""
    reading.refilled.clear()
    if name in ("fill_", "zero_"):
        reading.hold_whole(args[0])
    else:
        taken([*args, *kwargs.values()], reading)


def _offset(reading: Reading, tensor: Any, result: Any) -> Any:
    """Where a tensor begins in its memory: of that of callers, nobody knows it."""
    if not reading.is_made(tensor):
        reading.read("the offset", tensor)
    found = reading.offset(tensor)
    return result if found is None else found


def _filled_with(name: str, args: Any, kwargs: Any) -> Any:
    """The number with which a function of this name fills a tensor."""
    if name not in _FILLED_WITH:
        return None
    return kwargs.get("fill_value", kwargs.get("value", args[-1] if args else None))


def _tree_of_float(value: Any) -> Tree | None:
    """How a float was made that is followed."""
    return value.as_float() if isinstance(value, Float) else None


def _take_memory(reading: Reading, tensor: Any) -> None:
    """Of memory that the caller gives, nothing but its tensor is known."""
    if reading.is_derived(tensor):
        reading.read("the memory", tensor)
    taken([tensor, *reading.wholes_of(tensor)], reading)


def _sizes_of(reading: Reading, name: str, args: Any, kwargs: Any) -> Sequence[Any]:
    """The sizes with which a function makes a tensor."""
    if name.endswith("_like"):
        return reading.sizes(args[0], "shape", args[0].shape)
    given = args[1:] if name.startswith("new_") else args
    (first, *_) = given or (kwargs.get("size", ()),)
    return first if isinstance(first, tuple | list) else given


def _asked(reading: Reading, tensor: Any, kind: str, given: Any, result: Any) -> Any:
    """The result of `size` or `stride`: all of them, or one."""
    args, kwargs = given
    if isinstance(result, tuple):
        return (Shape if kind == "shape" else tuple)(reading.sizes(tensor, kind, result))
    axis = args[1] if len(args) > 1 else kwargs.get("dim")
    rank = tensor.dim()
    if not isinstance(axis, int) or isinstance(result, list):
        return result
    values = tensor.shape if kind == "shape" else tensor.stride()
    return reading.sizes(tensor, kind, values)[int(axis) % rank]
