"""What functions of PyTorch decide by sizes in C, where no comparison is seen: which part of a
tensor a slice is, whether one is contiguous.  It is compared here, so that calls come out the same.

Of a function of which nothing is known, the sizes of its tensors count as numbers that the host
function takes: they are the recorded ones.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Sequence
from functools import reduce
from itertools import chain
from typing import Any, Final

from ferrule.frontends.triton.recorded.forms import (
    KNOWN,
    NUMBERS_KNOWN,
    PARTED,
    Form,
    fits,
    form_of_elements,
    form_of_made,
    has_shape,
    is_compact,
    is_left,
    product,
    unknown,
)
from ferrule.frontends.triton.recorded.numbers.base import Number, numbers_inside, plain
from ferrule.frontends.triton.recorded.numbers.parted import forms_of_parts
from ferrule.frontends.triton.recorded.numbers.viewed import same
from ferrule.frontends.triton.recorded.reading import Reading, tensors_in
from ferrule.frontends.triton.recorded.tensors import is_torch

_OF_DTYPE: Final = frozenset(
    "ndim itemsize requires_grad is_leaf dim element_size is_floating_point is_complex is_signed "
    "get_device is_tensor is_cuda is_cpu is_meta is_sparse is_quantized is_nested is_mkldnn "
    "is_inference is_pinned is_neg is_conj is_xpu is_mps is_hip size stride numel nelement "
    "__len__ storage_offset data_ptr nbytes shape is_contiguous untyped_storage storage names "
    "_typed_storage __cuda_array_interface__ __dlpack_device__ is_set_to _is_view grad_fn "
    "retains_grad has_names is_shared is_coalesced _version output_nr is_sparse_csr is_vulkan "
    "is_maia is_mtia is_xla is_ipu is_ort __hash__ register_hook".split()
)
"""Functions that give a number or a bool that follows from no size, or that is followed."""
_GIVES_BACK: Final = frozenset(
    "to float half bfloat16 double cuda type type_as real positive __pos__ resolve_conj "
    "resolve_neg requires_grad_ detach_".split()
)
"""Functions that give their tensor back for what a call is held to: its dtype, its device."""
_OF_DIMS: Final = frozenset("permute transpose swapaxes swapdims unsqueeze squeeze flatten".split())
"""Views whose numbers name dims: another one is another view."""


_NAMES: Final[dict[str, tuple[str, ...]]] = {
    "narrow": ("dim", "start", "length"),
    "select": ("dim", "index"),
    "unflatten": ("dim", "sizes"),
    "flatten": ("start_dim", "end_dim"),
    "unsqueeze": ("dim",),
    "squeeze": ("dim",),
    "transpose": ("dim0", "dim1"),
    "swapdims": ("dim0", "dim1"),
    "swapaxes": ("axis0", "axis1"),
    "permute": ("dims",),
    "reshape": ("shape",),
    "view": ("size",),
    "expand": ("size",),
    "as_strided": ("size", "stride", "storage_offset"),
    "chunk": ("chunks", "dim"),
    "split": ("split_size", "dim"),
    "split_with_sizes": ("split_sizes", "dim"),
    "unbind": ("dim",),
}
"""The parameters of views behind the tensor, which is called `input`, or `self`."""
_DEFAULTS: Final = {"start_dim": 0, "end_dim": -1}


def placed(name: str, args: Sequence[Any], kwargs: Any) -> tuple[Sequence[Any], Any]:
    """Arguments of a view with those by name at their places, as a form reads them."""
    if name not in _NAMES or not kwargs:
        return args, kwargs
    left, found = dict(kwargs), list(args)
    for own in ("input", "self"):
        if not found and own in left:
            found.append(left.pop(own))
    for key in _NAMES[name][max(len(found) - 1, 0) :]:
        if key not in left and (key not in _DEFAULTS or not left):
            break
        found.append(left.pop(key, _DEFAULTS.get(key)))
    return tuple(found), left


def name_of(func: Any) -> str:
    """The name of a function of PyTorch, or of the attribute that it gets."""
    name = getattr(func, "__name__", "")
    return getattr(func.__self__, "__name__", "") if name == "__get__" else name


def shaped(reading: Reading, name: str, args: Sequence[Any], kwargs: Any, result: Any) -> None:
    """Compares what decides the shape of a result, or a bool, for the call to come out the same."""
    args, kwargs = placed(name, args, kwargs)
    given = list(tensors_in([*args, *kwargs.values()]))
    made = list(tensors_in(result))
    if name not in NUMBERS_KNOWN:  # as a custom operator, whose host function gets plain numbers
        for number in numbers_inside([*args, *kwargs.values()]):
            number.take()
    if given and name not in (_OF_DTYPE | PARTED) and _tells(result):
        _taken(reading, given, args, kwargs)
        for tensor in given:  # of a bool, strides may be what decides
            reading.pin(tensor)
    if given and made:
        _compare(reading, name, given[0], args, kwargs)
    parts = _parts_of(reading, name, args, kwargs, made) if name in PARTED else None
    for at, each in enumerate(made):
        form = _form(reading, name, args, kwargs, each, given) if parts is None else parts[at]
        if form is None:
            _taken(reading, given, args, kwargs)
        reading.make(each, form, given)


def _tells(result: Any) -> bool:
    """Whether numbers are in the result of a function of PyTorch, as they are or in something that
    nobody looks into."""
    if isinstance(result, tuple | list):
        return not result or any(map(_tells, result))
    return not (result is None or isinstance(result, str) or is_torch(result) or _is_kind(result))


def _is_kind(value: Any) -> bool:
    """Whether this is a dtype, a device, or the like."""
    torch = sys.modules["torch"]
    kinds = torch.dtype, torch.device, torch.layout, torch.memory_format, torch.Generator
    return isinstance(value, (*kinds, type))


def _parts_of(
    reading: Reading, name: str, args: Sequence[Any], kwargs: Any, made: Sequence[Any]
) -> Sequence[Form | None]:
    """The forms of the parts of a tensor, None for all if nothing is known of one."""
    _hold(reading, *(args[1:] if name == "unbind" else args[2:]))
    try:
        form = None if kwargs else reading.form(args[0])
        found = None if form is None else forms_of_parts(name, form, args[1:], len(made))
    except (TypeError, ValueError, ZeroDivisionError):  # arguments in another form
        found = None
    if found is not None and len(found) == len(made) and all(map(fits, found, made)):
        return found
    _taken(reading, [args[0]] if args else [], args, kwargs)
    return [None] * len(made)


def _compare(reading: Reading, name: str, tensor: Any, args: Sequence[Any], kwargs: Any) -> None:
    """What a view decides by the sizes of its tensor."""
    if name == "__getitem__":
        _parts(reading, tensor, args[1])
    elif name in ("narrow", "narrow_copy", "select"):
        _hold(reading, args[1], *kwargs.values())
        if len(args) < 3 or kwargs:
            _hold(reading, *args[2:3])
            return
        # What lies beyond the end is an error of PyTorch.
        size = reading.sizes(tensor, "shape", tensor.shape)[plain(args[1])]
        is_counted = bool(args[2] >= 0)
        if name != "select":
            _ = args[3] >= 0, (0 if is_counted else size) + args[2] + args[3] <= size
        _ = args[2] < size if is_counted else size >= -args[2]
    elif name in ("view_as", "reshape_as"):
        others = reading.sizes(args[1], "shape", args[1].shape)
        _divided(reading.sizes(tensor, "shape", tensor.shape), [others])
    elif name in ("view", "reshape"):
        _divided(reading.sizes(tensor, "shape", tensor.shape), args[1:] or tuple(kwargs.values()))
    elif name == "unflatten" and len(args) == 3:
        _hold(reading, args[1])
        _divided([reading.sizes(tensor, "shape", tensor.shape)[plain(args[1])]], args[2:])
    elif name in _OF_DIMS:
        _hold(reading, *numbers_inside([*args[1:], *kwargs.values()]))
    if name == "squeeze":
        for size in reading.sizes(tensor, "shape", tensor.shape):
            _ = size == 1


def _form(
    reading: Reading, name: str, args: Sequence[Any], kwargs: Any, made: Any, given: Sequence[Any]
) -> Form | None:
    """The form of what was made; None if it follows from nothing that is known."""
    found: Form | None
    if given and made is given[0] and name in _GIVES_BACK:
        return reading.form(made)
    try:
        found = form_of_made(name, reading.form, args, kwargs)
    except (IndexError, TypeError, ValueError, StopIteration):  # arguments in another form
        found = None
    if found is not None and fits(found, made):
        return found
    if found is not None and has_shape(found, made):
        of = reading.form(given[0]).shape if given else ()
        others = numbers_inside([*args, *kwargs.values()])
        _hold(reading, *(each for each in others if not any(same(each, size) for size in of)))
        return unknown(found.shape)
    if is_torch(made) and given and name not in KNOWN and _is_of_elements(name):
        found = form_of_elements([*map(reading.form, given)])
        return found if fits(found, made) else None
    return None


def _is_of_elements(name: str) -> bool:
    """Whether PyTorch says of a function that it computes each element of its tensors apart."""
    torch = sys.modules["torch"]
    word = name.strip("_")
    found = (getattr(torch.ops.aten, each, None) for each in (word, word.removeprefix("r")))
    packet: Any = next(filter(None, found), None)
    several = (getattr(packet, each, None) for each in ("default", "Tensor", "self"))
    return any(torch.Tag.pointwise in each.tags for each in several if each is not None)


def is_contiguous(reading: Reading, tensor: Any) -> bool:
    """Whether a tensor is compact in the order of its dims, by comparisons of its sizes."""
    form = reading.form(tensor)
    return any(size == 0 for size in form.shape) or is_compact(form)


def _taken(reading: Reading, tensors: Sequence[Any], args: Sequence[Any], kwargs: Any) -> None:
    """Sizes and numbers of which nobody knows what a function made of them."""
    sizes = (reading.sizes(tensor, "shape", tensor.shape) for tensor in tensors)
    for each in (*chain(*sizes), *numbers_inside([*args, *kwargs.values()])):
        if isinstance(each, Number):
            each.take()


def taken(given: Sequence[Any], reading: Reading) -> None:
    """All sizes and numbers that a function got."""
    _taken(reading, [*tensors_in(given)], given, {})


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
            _taken(reading, [tensor], [index], {})
            return
        elif _takes_dim(each):
            if isinstance(each, slice):
                _part(sizes[axis], each)
            elif isinstance(each, int):
                _ = each < sizes[axis] if each >= 0 else sizes[axis] >= -each
            axis += 1


def _takes_dim(each: Any) -> bool:
    return each is not None and each is not Ellipsis and not isinstance(each, bool)


def _part(size: Any, part: slice) -> None:
    ends = [each for each in (part.start, part.stop) if each is not None]
    if not all(isinstance(each, int) for each in ends):
        return  # nobody knows its form, and so all sizes are taken
    for end in ends:
        _ = size >= (end if end >= 0 else -end)
    if len(ends) == 2:
        first, last = (each if each >= 0 else size + each for each in ends)
        _ = first <= last


def _hold(reading: Reading, *numbers: Any) -> None:
    """Where a part begins is in no number of a launch: it is what it was."""
    for each in numbers:
        if isinstance(each, Number):
            reading.hold(each)


def _divided(sizes: Sequence[Any], shape: Sequence[Any]) -> None:
    """A size that is left to PyTorch, -1, is a whole number, and without one the elements are as
    many: else it raises."""
    (first, *_) = shape or (None,)
    listed = first if isinstance(first, tuple | list) else shape
    if not all(isinstance(each, int) for each in listed):  # a view as another dtype
        return
    said = [each for each in listed if not is_left(each)]
    if len(said) == len(listed):
        _ = product(sizes) == product(listed)
        return
    left = list(reversed(sizes))
    by: Any = 1
    for number in said:
        _ = number > 0  # of nothing, each number is what is left
        same = next((at for at, size in enumerate(left) if plain(size) == plain(number)), None)
        if same is None:
            by = by * number
        else:
            _ = left.pop(same) == number
    _ = by == 1 or reduce(operator.mul, left, 1) % by == 0
