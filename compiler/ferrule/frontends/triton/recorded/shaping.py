"""What functions of PyTorch decide by sizes in C, where no comparison is seen: which part of a
tensor a slice is, whether one is contiguous.  It is compared here, so that calls come out the same.

Of a function of which nothing is known, the sizes of its tensors count as numbers that the host
function takes: they stay between the recorded ones.
"""

from __future__ import annotations

import contextlib
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from typing import Any, Final

from ferrule.frontends.triton.recorded.followed import Followed, plain
from ferrule.frontends.triton.recorded.reading import Reading, tensors_in
from ferrule.frontends.triton.recorded.tensors import is_torch

_SAID: Final = frozenset(
    "view reshape expand repeat as_strided unflatten flatten ravel unsqueeze empty zeros ones full "
    "new_empty new_zeros new_ones new_full empty_strided tensor".split()
)
"""Functions of whose results the sizes are given, or are products of all sizes."""
_OF_DTYPE: Final = frozenset(
    "ndim itemsize requires_grad is_leaf dim element_size is_floating_point is_complex is_signed "
    "get_device is_tensor is_cuda is_cpu is_meta is_sparse is_quantized is_nested is_mkldnn "
    "is_inference is_pinned is_neg is_conj is_xpu is_mps is_hip size stride numel nelement "
    "__len__ storage_offset data_ptr nbytes is_contiguous".split()
)
"""Functions that give a number or a bool that follows from no size, or that is followed."""
_TAKE_INTEGERS: Final = "log log2 log10 isqrt gcd lcm comb perm factorial ldexp".split()
"""Functions of `math` that take the number itself, and ask no method for it."""


def name_of(func: Any) -> str:
    """The name of a function of PyTorch, or of the attribute that it gets."""
    name = getattr(func, "__name__", "")
    return getattr(func.__self__, "__name__", "") if name == "__get__" else name


def shaped(reading: Reading, name: str, args: Sequence[Any], kwargs: Any, result: Any) -> None:
    """Compares what decides the shape of a result, or a bool, for the call to come out the same."""
    given = list(tensors_in([*args, *kwargs.values()]))
    if not given:
        return
    if isinstance(result, bool | int):
        if name not in _OF_DTYPE:
            _taken(reading, given)
        return
    made = list(tensors_in(result))
    if not made:
        return
    if name == "__getitem__":
        _parts(reading, given[0], args[1])
    elif name in ("narrow", "narrow_copy", "select"):
        # What lies beyond the end is an error of PyTorch, and the length is given.
        _hold(reading, *args[1:3], *kwargs.values())
    elif name in ("view", "reshape"):
        _divided(reading, given[0], args[1:] or tuple(kwargs.values()))
    elif name == "squeeze":
        for size in reading.sizes(given[0], "shape", given[0].shape):
            _ = size == 1
    elif name not in _SAID and not all(_is_kept(each, given) for each in made):
        _taken(reading, given)


def is_contiguous(reading: Reading, tensor: Any) -> bool:
    """Whether a tensor is compact in the order of its dims, by comparisons of its sizes."""
    shape = reading.sizes(tensor, "shape", tensor.shape)
    strides = reading.sizes(tensor, "stride", tensor.stride())
    if any(size == 0 for size in shape):
        return True
    step: Any = 1
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size != 1:
            if stride != step:
                return False
            step = size * step
    return True


def _is_kept(made: Any, given: Sequence[Any]) -> bool:
    """Whether a tensor has the sizes of one that the function took, in any order."""
    return any(_sizes(made) == _sizes(each) for each in given)


def _sizes(tensor: Any) -> list[int]:
    return sorted(int(each) for each in tensor.shape if each != 1)


def _taken(reading: Reading, tensors: Sequence[Any]) -> None:
    for tensor in tensors:
        for size in reading.sizes(tensor, "shape", tensor.shape):
            reading.log.escape(size.tree)


def _parts(reading: Reading, tensor: Any, index: Any) -> None:
    """The slices of an index: where each begins and ends, and whether the tensor ends before."""
    listed = index if isinstance(index, tuple) else (index,)
    sizes = reading.sizes(tensor, "shape", tensor.shape)
    skipped = len(sizes) - sum(_takes_dim(each) for each in listed)
    axis = 0
    for each in listed:
        if each is Ellipsis:
            axis += skipped
        elif is_torch(each) or isinstance(each, list):
            _taken(reading, [tensor])
            return
        elif _takes_dim(each):
            if isinstance(each, slice):
                _part(reading, sizes[axis], each)
            _hold(reading, each)
            axis += 1


def _takes_dim(each: Any) -> bool:
    return each is not None and each is not Ellipsis and not isinstance(each, bool)


def _part(reading: Reading, size: Followed, part: slice) -> None:
    ends = [each for each in (part.start, part.stop) if each is not None]
    if part.step not in (None, 1) or not all(isinstance(each, int) for each in ends):
        reading.log.escape(size.tree)
        return
    _hold(reading, part.start)
    for end in ends:
        _ = size >= (end if end >= 0 else -end)
    if len(ends) == 2:
        first, last = (each if each >= 0 else size + each for each in ends)
        _ = first <= last


def _hold(reading: Reading, *numbers: Any) -> None:
    """Where a part begins is in no number of a launch: it is what it was."""
    for each in numbers:
        if isinstance(each, Followed):
            reading.hold(each)


def _divided(reading: Reading, tensor: Any, shape: Sequence[Any]) -> None:
    """A size that is left to PyTorch, -1, is a whole number: else it raises."""
    (first, *_) = shape or (None,)
    listed = first if isinstance(first, tuple | list) else shape
    if -1 not in map(plain, listed):
        return
    left = list(reversed(reading.sizes(tensor, "shape", tensor.shape)))
    by: Any = 1
    for number in (each for each in listed if plain(each) > 0):
        same = next((at for at, size in enumerate(left) if plain(size) == plain(number)), None)
        if same is None:
            by = by * number
        else:
            _ = left.pop(same) == number
    _ = by == 1 or reduce(operator.mul, left, 1) % by == 0


@contextlib.contextmanager
def mathematics_watched() -> Iterator[None]:
    """Inside, functions of `math` that take the number of a size itself are seen."""
    with contextlib.ExitStack() as undo:
        for name in _TAKE_INTEGERS:
            own = getattr(math, name)
            undo.callback(setattr, math, name, own)
            setattr(math, name, _seeing(own))
        yield


def _seeing(own: Callable[..., Any]) -> Callable[..., Any]:
    def function(*args: Any) -> Any:
        for each in args:
            if isinstance(each, Followed):
                each.log.escape(each.tree)
        return own(*args)

    return function
