"""How sizes and strides of the tensors that a host function makes follow from those that it has.

Where a function decides by sizes, it does so here too, by comparisons, which are remembered.
A function of PyTorch decides them in C.  Here it is written for the functions that host functions
use around launches: of a view or a new tensor they are expressions over the sizes before.  What is
not written here has sizes of which nothing is known.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, Final

from ferrule.frontends.triton.recorded.numbers.base import Number, plain
from ferrule.frontends.triton.recorded.numbers.viewed import (
    Decision,
    Path,
    Sizes,
    Viewing,
    compare,
    is_empty,
    of_elements,
    same,
    strides_of_nothing,
)
from ferrule.specs.deferred import dataclass


@dataclass(frozen=True, slots=True)
class Form:
    """Sizes and strides of a tensor, as numbers that are followed.

    `path`: the strides are these in a call in which these decisions come out the same.  `moves`: so
    are the places of elements.  `offset` is the place of its first element in the tensor of which
    it is a view, None where nobody knows it.
    """

    shape: Sizes
    strides: Sizes
    path: tuple[Decision, ...] = ()
    moves: bool = False
    offset: Any = 0


def form_of_made(name: str, of: Callable[[Any], Form | None], args: Any, named: Any) -> Form | None:
    """The form of what a function of this name makes; None if it is not written here.

    `of` gives the form of a tensor; the result may be wrong for other arguments than are written
    here, and is to be compared with the tensor.
    """
    if name.endswith("_like"):
        form = of(args[0])
        return None if form is None else _like(form, named)
    if name in _FACTORIES:
        if any(map(_is_format, named.values())):
            return None
        given = args[1:] if name.startswith("new_") else args
        shape = listed(given or [named.get("size", ())])
        _ = [size >= 0 for size in shape]  # of a negative one PyTorch raises
        return compact(shape)
    if name == "view" and len(args) == 2 and hasattr(args[1], "itemsize"):  # as another dtype
        return of(args[0]) if args[0].element_size() == args[1].itemsize else None
    if name in _AS:
        name, args = _AS[name], (args[0], of(args[1]).shape)  # type: ignore[union-attr]
    write = _WRITERS.get(name)
    form = of(args[0]) if write is not None or name in _KEEP else None
    if form is None or write is None:
        return form
    return write(form, [*args[1:], *named.values()])


def _like(form: Form, named: Any) -> Form | None:
    formats = [each for each in named.values() if _is_format(each)]
    if formats:
        is_plain = str(formats[0]) == "torch.contiguous_format"
        return compact(form.shape) if is_plain else None
    if is_compact(form):
        return replace(form, offset=0)
    return _made_dense(form)


def _made_dense(form: Form) -> Form | None:
    """What is like a tensor with room between its elements: it has none.

    PyTorch keeps the order of the dims by their strides, which is known where these fall: each is
    larger than the next one.
    """
    pairs = [*zip(form.strides, form.strides[1:], strict=False)]
    if not all(isinstance(step, int) for step in form.strides):
        return None
    if not all(plain(step) > plain(inner) for step, inner in pairs):
        return None
    _ = [step > inner for step, inner in pairs]
    path = Path([*form.path])
    of_elements(path, form.shape)  # what is empty keeps its strides
    return Form(form.shape, compact(form.shape).strides, tuple(path.decisions))


def has_shape(form: Form, tensor: Any) -> bool:
    """Whether a tensor has these sizes."""
    return tuple(plain(each) for each in form.shape) == tuple(tensor.shape)


def fits(form: Form, tensor: Any) -> bool:
    """Whether a tensor has these sizes, and these strides where they are known.

    Also where a size is 1, and no element moves: a host function may read the stride.
    """
    steps = zip(tensor.stride(), form.strides, strict=False)
    return has_shape(form, tensor) and all(
        known is None or step == plain(known) for step, known in steps
    )


def _is(size: Any, number: int) -> bool:
    """Whether a size is this number, by which strides do not count; then calls are compared for
    it."""
    return plain(size) == number and bool(size == number)


def compact(shape: Sequence[Any]) -> Form:
    """A tensor whose elements lie one behind the other."""
    strides: list[Any] = []
    step: Any = 1
    for size in reversed(shape):
        strides.append(step)
        step = step * size if plain(size) != 0 else step
    return Form(tuple(shape), tuple(reversed(strides)))


def listed(given: Sequence[Any]) -> Sequence[Any]:
    """Sizes as one argument, or as several."""
    (first, *_) = given or ((),)
    return first if isinstance(first, tuple | list) else given


def is_compact(form: Form) -> bool:
    """Whether the elements of a tensor lie one behind the other; then calls are compared for it.

    Where a size is 1, a stride may be any.
    """
    if form.moves:
        compare(form.path)
    wanted = zip(form.shape, form.strides, compact(form.shape).strides, strict=True)
    return all(_is_apart(size, step, known) for size, step, known in wanted)


def _is_apart(size: Any, step: Any, known: Any) -> bool:
    """Whether the elements of a dim are so far apart, if there are several."""
    if not isinstance(step, int):  # None: nobody knows it
        return False
    if same(step, known):
        return True
    outcome = bool(plain(size) == 1 or plain(step) == plain(known))
    compare([("eq", step, known, outcome, size)])
    return outcome


def _of_copy(form: Form) -> Form:
    """What keeps the order of the dims: of a compact tensor it has the same strides, also where a
    size is 1; of another one it may have others."""
    return replace(form, offset=0) if is_compact(form) else unknown(form.shape)


def unknown(shape: Sizes) -> Form:
    """A tensor of whose strides nothing is known."""
    return Form(shape, (None,) * len(shape), offset=None)


def _copied(form: Form, given: Sequence[Any]) -> Form | None:
    return None if any(map(_is_format, given)) else _of_copy(form)


def _is_format(value: Any) -> bool:
    """Whether this is a format of memory, which decides strides."""
    return type(value).__name__ == "memory_format"


def _made_compact(form: Form, given: Sequence[Any]) -> Form | None:
    """`contiguous`: the tensor itself, if it is compact or empty."""
    if any(str(each) != "torch.contiguous_format" for each in given):
        return None
    if any(_is(size, 0) for size in form.shape) or is_compact(form):
        return form
    path = Path([*form.path])
    of_elements(path, form.shape)
    return Form(form.shape, compact(form.shape).strides, tuple(path.decisions))


def form_of_elements(forms: Sequence[Form]) -> Form:
    """The form of what a function of each element makes of tensors of these."""
    shape = reduce(_broadcast, (form.shape for form in forms))
    if is_empty(shape):  # of which PyTorch computes strides in another way
        return unknown(shape)
    is_one = all(is_compact(form) and _has_steps(form) for form in forms)
    if not is_one:
        return unknown(shape)
    path = Path([each for form in forms for each in form.path])
    of_elements(path, shape)
    return Form(shape, compact(shape).strides, tuple(path.decisions))


def _has_steps(form: Form) -> bool:
    """Whether the strides are those of a compact tensor, also where a size is 1: calls are
    compared for each."""
    pairs = zip(form.strides, compact(form.shape).strides, strict=True)
    return all(same(step, known) or step == known for step, known in pairs)


def _broadcast(one: Sizes, other: Sizes) -> Sizes:
    """The sizes of two tensors together: a 1 is repeated."""
    rank = max(len(one), len(other))
    pairs = zip(*((*[1] * (rank - len(each)), *each) for each in (one, other)), strict=True)
    return tuple(b if not same(a, b) and a != b and a == 1 else a for a, b in pairs)


def _viewed(form: Form, given: Sequence[Any]) -> Form:
    """`view`, `reshape`: one size may be left to PyTorch."""
    shape = list(listed(given))
    left = list(map(is_left, shape))
    if True in left:
        at = left.index(True)
        shape[at] = _left(list(form.shape), shape[:at] + shape[at + 1 :])
    return _seen_as(form, shape)


def _seen_as(form: Form, shape: Sequence[Any]) -> Form:
    """A tensor in another shape.  Of a compact one the strides are those of a compact one, also
    where a size is 1."""
    new, path = tuple(shape), Path([*form.path])
    if is_empty(form.shape):
        _ = [size == 0 for size in form.shape]
        strides = strides_of_nothing(path, form.shape, form.strides, new)
        return Form(new, strides, tuple(path.decisions), offset=form.offset)
    if len(new) == len(form.shape) and all(map(same, new, form.shape)):
        return _seen_again(form)
    of_elements(path, form.shape)
    if _is_compact_here(form) and is_compact(form):
        if form.strides:
            path.asks("eq", form.strides[-1], 1)
        return Form(new, compact(new).strides, tuple(path.decisions), offset=form.offset)
    viewing = Viewing(form.shape, form.strides, new, path)
    strides_ = viewing.strides()
    if strides_ is None:
        return Form(new, compact(new).strides, tuple(path.decisions), moves=True)
    _ = [_is_apart(*each) for each in viewing.joined]  # else the elements would be copied
    return Form(new, strides_, tuple(path.decisions), moves=True, offset=form.offset)


def _seen_again(form: Form) -> Form:
    """A tensor with elements in its own shape: a view, also where it is not compact.  Of a dim of
    size 1 the stride is another one."""
    if None in form.strides:
        return form
    path, strides = Path([*form.path]), form.strides
    of_elements(path, form.shape)
    if _is_compact_here(form):  # it is that also where a size is 1
        strides = compact(form.shape).strides
        for size, *steps in zip(form.shape, form.strides, strides, strict=True):
            path.asks_joined(size, *steps)
        if strides:
            path.asks("eq", form.strides[-1], 1)
    elif any(plain(size) == 1 for size in form.shape):
        strides = Viewing(form.shape, form.strides, form.shape, path).strides() or strides
    else:
        for size in form.shape:
            path.asks("ne", size, 1)
    return replace(form, strides=strides, path=tuple(path.decisions))


def _is_compact_here(form: Form) -> bool:
    """Whether a tensor is compact in the recording, and its last stride is 1; calls are not
    compared for it."""
    known = zip(*map(plain, (form.shape, form.strides, compact(form.shape).strides)), strict=True)
    is_one = all(size == 1 or step == wanted for size, step, wanted in known)
    return is_one and (not form.strides or bool(plain(form.strides[-1]) == 1))


def is_left(size: Any) -> bool:
    """Whether a size is -1, which is no size: PyTorch decides it.  A call is compared for it, and
    for being no other negative number, which PyTorch refuses."""
    return not size >= 0 and bool(size == -1)


def _left(sizes: list[Any], said: Sequence[Any]) -> Any:
    """What is left of a product when it is divided by these: equal factors are taken out first."""
    by: Any = 1
    for number in said:
        factor = next((at for at, size in enumerate(sizes) if same(size, number)), None)
        if factor is None:
            by = by * number
        else:
            sizes.pop(factor)
    is_one = not isinstance(by, Number) and by == 1  # a number that is 1 here need not be it there
    return product(sizes) if is_one else product(sizes) // by


def product(sizes: Sequence[Any]) -> Any:
    """The number of elements."""
    return reduce(operator.mul, sizes, 1)


def _expanded(form: Form, given: Sequence[Any]) -> Form:
    shape, new = listed(given), len(listed(given)) - len(form.shape)
    old = [(1, 0)] * new + list(zip(form.shape, form.strides, strict=True))
    sizes = [was if is_left(size) else size for size, (was, _) in zip(shape, old, strict=True)]
    pairs = zip(sizes, old, strict=True)
    steps = [step if same(size, was) or size == was else 0 for size, (was, step) in pairs]
    return replace(form, shape=tuple(sizes), strides=tuple(steps))


def _permuted(form: Form, given: Sequence[Any]) -> Form:
    order = [plain(each) for each in listed(given)]
    shape, strides = (tuple(each[at] for at in order) for each in (form.shape, form.strides))
    return replace(form, shape=shape, strides=strides)


def _swapped(form: Form, given: Sequence[Any]) -> Form:
    order = [*range(len(form.shape))]
    one, other = (plain(each) for each in given[:2])
    order[one], order[other] = order[other], order[one]
    return _permuted(form, order)


def _turned(form: Form, _: Sequence[Any]) -> Form:
    """`t`, `mT`."""
    return _swapped(form, (-2, -1)) if len(form.shape) > 1 else form


def _reversed(form: Form, _: Sequence[Any]) -> Form:
    """`T`: all dims."""
    return _permuted(form, [*reversed(range(len(form.shape)))])


def _widened(form: Form, given: Sequence[Any]) -> Form:
    """`unsqueeze`."""
    at = plain(given[0]) % (len(form.shape) + 1)
    inside = at < len(form.shape)
    step = form.shape[at] * form.strides[at] if inside else 1
    shape = (*form.shape[:at], 1, *form.shape[at:])
    return replace(form, shape=shape, strides=(*form.strides[:at], step, *form.strides[at:]))


def _squeezed(form: Form, given: Sequence[Any]) -> Form:
    """Which sizes are 1 is compared by who asks."""
    rank = len(form.shape)
    axes = {plain(each) % rank for each in listed(given)} if given else {*range(rank)}
    left = [at for at in range(rank) if at not in axes or plain(form.shape[at]) != 1]
    return _permuted(form, left)


def _flattened(form: Form, given: Sequence[Any]) -> Form:
    rank = len(form.shape)
    first, last = (plain(each) % max(rank, 1) for each in (*given, *(0, -1)[len(given) :]))
    if first == last:
        return form
    inner = product(form.shape[first : last + 1])
    return _seen_as(form, (*form.shape[:first], inner, *form.shape[last + 1 :]))


def _ravelled(form: Form, given: Sequence[Any]) -> Form | None:
    """`ravel`: a view of what `contiguous` makes."""
    made = _made_compact(form, ())
    return None if made is None or given else _viewed(made, [-1])


def _unflattened(form: Form, given: Sequence[Any]) -> Form:
    at, sizes = plain(given[0]) % len(form.shape), [*given[1]]
    inner = _viewed(Form((form.shape[at],), (1,)), [sizes]).shape
    return _seen_as(form, (*form.shape[:at], *inner, *form.shape[at + 1 :]))


def _narrowed(form: Form, given: Sequence[Any]) -> Form:
    at = plain(given[0]) % len(form.shape)
    part = replace(form, shape=(*form.shape[:at], given[2], *form.shape[at + 1 :]))
    return replace(part, offset=moved(form.offset, _counted(form.shape[at], given[1]), form, at))


def selected(form: Form, given: Sequence[Any]) -> Form:
    at = plain(given[0]) % len(form.shape)
    part = _permuted(form, [each for each in range(len(form.shape)) if each != at])
    return replace(part, offset=moved(form.offset, _counted(form.shape[at], given[1]), form, at))


def _counted(size: Any, index: Any) -> Any:
    """A place in a dim: a negative one is counted from its end."""
    return index if plain(index) >= 0 else size + index


def moved(offset: Any, start: Any, form: Form, axis: int) -> Any:
    """An offset, further by so many elements of a dim."""
    step = form.strides[axis]
    if plain(start) == 0 and not isinstance(start, Number):
        return offset
    return None if offset is None or step is None else offset + start * step


def _strided(form: Form, given: Sequence[Any]) -> Form | None:
    steps = zip(given[0], given[1], strict=True)
    _ = [number >= 0 for number in (*given[0], *given[1])]
    if not 1 + sum((size - 1) * step for size, step in steps) <= product(form.shape):
        return None  # how much memory there is, nobody says
    offset = form.offset if len(given) < 3 or given[2] is None else None
    return Form(tuple(given[0]), tuple(given[1]), offset=offset)


def _indexed(form: Form, given: Sequence[Any]) -> Form | None:
    """A part of a tensor: numbers, slices, `None` and `...`."""
    (index,) = given
    listed_ = index if isinstance(index, tuple) else (index,)
    if not all(each is None or each is Ellipsis or _is_part(each) for each in listed_):
        return None
    left = len(form.shape) - sum(each is not None and each is not Ellipsis for each in listed_)
    shape: list[Any] = []
    strides: list[Any] = []
    at, offset = 0, form.offset
    for each in [*listed_, *([] if Ellipsis in listed_ else [Ellipsis])]:
        if each is None:  # as `unsqueeze` does it
            shape.append(1)
            strides.append(form.shape[at] * form.strides[at] if at < len(form.shape) else 1)
        elif each is Ellipsis:
            shape += form.shape[at : at + left]
            strides += form.strides[at : at + left]
            at += left
        else:
            size = form.shape[at]
            if isinstance(each, slice):
                step = each.step or 1
                shape.append(-(-_length(size, each) // step))
                strides.append(form.strides[at] * step)
            start = _start(size, each) if isinstance(each, slice) else _counted(size, each)
            offset = moved(offset, start, form, at)
            at += 1
    if None in strides:
        return None
    return replace(form, shape=tuple(shape), strides=tuple(strides), offset=offset)


def _is_part(each: Any) -> bool:
    if isinstance(each, slice):
        return each.step is None or (type(each.step) is int and each.step > 0)
    return isinstance(each, int) and not isinstance(each, bool)


def _length(size: Any, part: slice) -> Any:
    """The size of a part; whether the tensor ends before it does, is compared by who asks."""
    start, last = _begin(size, part), _end(size, part.stop)
    stop = size if last is None or plain(last) > plain(size) else last
    if plain(start) > plain(size):
        return 0
    # Also where they are equal: what is compared is that it does not begin behind its end.
    return stop - start if plain(stop) >= plain(start) else 0


def _start(size: Any, part: slice) -> Any:
    """Where a part begins, at the end at most."""
    start = _begin(size, part)
    return size if plain(start) > plain(size) else start


def _begin(size: Any, part: slice) -> Any:
    first = _end(size, part.start)
    return 0 if first is None else first


def _end(size: Any, end: Any) -> Any:
    if end is None or plain(end) >= 0:
        return end
    return size + end if plain(size) + plain(end) >= 0 else 0


_FACTORIES: Final = frozenset(
    "empty empty_like new_empty zeros zeros_like new_zeros ones ones_like new_ones full full_like "
    "new_full rand randn rand_like randn_like".split()
)
"""Functions that make tensors of given sizes."""
_KEEP: Final = frozenset(
    "detach alias zero_ fill_ requires_grad_ data copy_ add_ mul_ sub_ div_".split()
)
"""Functions whose result has the sizes of their tensor."""
_WRITERS: Final[dict[str, Callable[[Form, Sequence[Any]], Form | None]]] = {
    "view": _viewed,
    "reshape": _viewed,
    "expand": _expanded,
    "permute": _permuted,
    "transpose": _swapped,
    "swapaxes": _swapped,
    "swapdims": _swapped,
    "t": _turned,
    "T": _reversed,
    "mT": _turned,
    "unsqueeze": _widened,
    "squeeze": _squeezed,
    "flatten": _flattened,
    "ravel": _ravelled,
    "unflatten": _unflattened,
    "narrow": _narrowed,
    "select": selected,
    "as_strided": _strided,
    "__getitem__": _indexed,
    "contiguous": _made_compact,
    **dict.fromkeys("clone to float half bfloat16 double cuda cpu".split(), _copied),
}
"""Views and copies, with the form of each."""
_AS: Final = {"view_as": "view", "reshape_as": "reshape", "expand_as": "expand"}
"""Functions that take the sizes of another tensor."""
PARTED: Final = frozenset({"chunk", "split", "split_with_sizes", "unbind"})
"""Functions that cut a tensor into parts along a dim."""
NUMBERS_KNOWN: Final = _FACTORIES | _KEEP | PARTED | {*_WRITERS, *_AS, "size", "stride"}
"""Functions that are known to make nothing else of numbers that they get."""
KNOWN: Final = _FACTORIES | {*_WRITERS, *_AS}
"""Functions whose results have the sizes that are said, whatever these are."""
