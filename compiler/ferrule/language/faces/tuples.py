"""Functions of nested tuples under CuTe DSL's names, written in Python itself.

They work in ordinary Python and, with run-time values in the tuples, in compiled functions.  What
computes with sizes is in `ferrule.language.layouts`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ferrule.language.faces.base import outside, range_constexpr
from ferrule.language.layouts import (
    Layout,
    append,
    cosize,
    crd2idx,
    format_tuple,
    idx2crd,
    make_layout,
    prepend,
    product,
    rank,
)
from ferrule.language.layouts import slice_and_offset as kept_and_first
from ferrule.specs import ceil_div
from ferrule.specs.expr import divisibility_of, is_dim


def wrap(x: Any) -> Any:
    """A tuple as it is, anything else as a tuple of one."""
    return x if isinstance(x, tuple) else (x,)


def unwrap(x: Any) -> Any:
    """What is inside of tuples of one."""
    return unwrap(x[0]) if isinstance(x, tuple) and len(x) == 1 else x


def flatten_to_tuple(a: Any) -> Any:
    """The leaves of a nested tuple, from left to right; a leaf as a tuple of one."""
    if not isinstance(a, tuple):
        return (a,)
    result: Any = ()
    for item in a:
        result = (*result, *flatten_to_tuple(item))
    return result


def front(a: Any) -> Any:
    """The first leaf of a nested tuple; of a layout the first mode of its leaves."""
    if isinstance(a, Layout):
        return a if not isinstance(a.shape, tuple) else front(a[0])
    return front(a[0]) if isinstance(a, tuple) else a


def repeat_as_tuple(x: Any, n: int) -> Any:
    """A tuple of n times x."""
    if n < 1:
        raise ValueError(f"n must be at least 1, but got {n}")
    return (x,) * n


def repeat(x: Any, n: int) -> Any:
    """A tuple of n times x; x itself for n = 1."""
    return x if n == 1 else repeat_as_tuple(x, n)


def find_if(t: Any, pred_fn: Callable[[Any, Any], bool], hierarchical: bool = True) -> Any:
    """The position of the first leaf for which `pred_fn(leaf, position)` holds, else None.

    With `hierarchical` the position in a nested tuple is a tuple, otherwise that of the outer
    item.
    """
    for i, item in enumerate(wrap(t)):
        if not isinstance(item, tuple):
            if pred_fn(item, i):
                return i
            continue
        inner = find_if(item, pred_fn, hierarchical)
        if inner is not None:
            return (i, *wrap(inner)) if hierarchical else i
    return None


def find(t: Any, x: Any, hierarchical: bool = True) -> Any:
    """The position of the first leaf that equals x, else None; see `find_if`.

    Raises TypeError for an x that is a tuple, as it is where the two arguments are exchanged.
    """
    if isinstance(x, tuple):
        raise TypeError(f"find(t, x): x is one leaf, such as an int, but got {x}")
    return find_if(t, lambda item, _: bool(item == x), hierarchical)


def filter_tuple(*args: Any, f: Callable[..., tuple[Any, ...]]) -> Any:
    """The tuples that f gives for the items of tuples of one length, joined."""
    result: Any = ()
    for items in zip(*args, strict=True):
        result = (*result, *f(*items))
    return result


def transform_leaf(f: Callable[..., Any], *args: Any) -> Any:
    """A tuple with f of the leaves of tuples of one profile."""
    if not isinstance(args[0], tuple):
        return f(*args)
    return tuple([transform_leaf(f, *items) for items in _rows(args)])


def _rows(tuples: Any) -> Any:
    """The items of tuples, side by side."""
    lengths = {len(each) if isinstance(each, tuple) else -1 for each in tuples}
    if len(lengths) > 1:
        raise ValueError("the tuples have different profiles")
    return [tuple([each[i] for each in tuples]) for i in range(len(tuples[0]))]


def transform_apply(*args: Any, f: Callable[..., Any], g: Callable[..., Any]) -> Any:
    """`g(f(…), f(…), …)`: f takes the items at one position of tuples of one length."""
    return g(*[f(*items) for items in _rows(tuple([wrap(each) for each in args]))])


def has_underscore(a: Any) -> Any:
    """Whether a nested tuple has a None, which keeps a mode."""
    if isinstance(a, tuple):
        return any(has_underscore(item) for item in a)
    return a is None


def is_integer(a: object) -> bool:
    """Whether this is an integer: of Python, with a dtype, a size, or of the call."""
    return isinstance(a, int) or is_dim(a) or _has_integer_dtype(a)


def _has_integer_dtype(a: Any) -> bool:
    dtype = getattr(a, "dtype", None)
    return bool(getattr(dtype, "is_integer", False)) and not hasattr(a, "shape")


def is_int_tuple(a: object) -> bool:
    """Whether this is an integer, or a nested tuple of integers."""
    if isinstance(a, tuple):
        return all(is_int_tuple(item) for item in a)
    return is_integer(a)


def product_like(a: Any, target_profile: Any) -> Any:
    """The product of the items of `a` at each leaf of the profile."""
    if not isinstance(target_profile, tuple):
        return product(a)
    if not isinstance(a, tuple) or len(a) != len(target_profile):
        raise ValueError(
            f"{format_tuple(a)} has not as many items as {format_tuple(target_profile)}"
        )
    return tuple([product_like(*pair) for pair in zip(a, target_profile, strict=True)])


def is_major(mode: Any, stride: Any) -> Any:
    """Whether the mode has stride 1: whether it is the fastest one."""
    found = wrap(stride)[mode]
    return isinstance(found, int) and found == 1


def leading_dim(shape: Any, stride: Any) -> Any:
    """The position of the leaf with stride 1 and more than one element, else None.

    In a nested shape the position is a tuple.
    """
    for i, (size, step) in enumerate(zip(wrap(shape), wrap(stride), strict=True)):
        if isinstance(size, tuple):
            inner = leading_dim(size, step)
            if inner is not None:
                return (i, *wrap(inner))
        elif isinstance(step, int) and step == 1 and not (isinstance(size, int) and size == 1):
            return i
    return None


def get_divisibility(x: Any) -> int:
    """A number that is known to divide an integer: the int itself, or what a size's symbol says."""
    return divisibility_of(x) if is_dim(x) else 1


def round_up(a: Any, b: Any) -> Any:
    """The smallest multiple of b that is not below a; of tuples item by item."""
    if isinstance(a, tuple) or isinstance(b, tuple):
        if not (isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b)):
            raise TypeError("round_up takes two integers, or two tuples of one length")
        return tuple([round_up(*pair) for pair in zip(a, b, strict=True)])
    return (a + b - 1) // b * b


def append_ones(t: Any, up_to_rank: int | None = None) -> Any:
    """A layout or a tensor with modes of size 1 after its own: one, or up to this rank."""
    more = 1 if up_to_rank is None else up_to_rank - rank(t)
    for _ in range_constexpr(more):
        t = append(t, make_layout(1, stride=0))
    return t


def prepend_ones(t: Any, up_to_rank: int | None = None) -> Any:
    """A layout or a tensor with modes of size 1 before its own: one, or up to this rank."""
    more = 1 if up_to_rank is None else up_to_rank - rank(t)
    for _ in range_constexpr(more):
        t = prepend(t, make_layout(1, stride=0))
    return t


def pretty_str(arg: Any) -> str:
    """A nested tuple without spaces, `_` for None; a layout; anything else as `str` shows it."""
    return format_tuple(arg) if isinstance(arg, tuple) or arg is None else str(arg)


def increment_coord(coord: Any, shape: Any) -> Any:
    """The next coordinate in colexicographic order; the last mode is not wrapped."""
    return idx2crd(crd2idx(coord, make_layout(shape)) + 1, shape)


def size_in_bytes(dtype: Any, layout: Any) -> Any:
    """The bytes that elements of a dtype take in a layout; 0 for None."""
    return 0 if layout is None else ceil_div(cosize(layout) * dtype.bits, 8)


def slice_and_offset(coord: Any, src: Any) -> Any:
    """The layout of the modes that a coordinate keeps with None, and the index of its beginning."""
    kept, first = kept_and_first(src, coord)
    return kept, first


def assume(src: Any, divby: int | None = None, pow2: bool | None = None) -> Any:
    """The integer itself, of which the program says that `divby` divides it.

    For a number that is known while compiling this is checked; in a host function it is checked in
    each call.  In a kernel it is not used.
    """
    outside("assume")
