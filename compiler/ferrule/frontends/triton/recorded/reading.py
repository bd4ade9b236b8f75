"""What a host function has read of PyTorch's tensors: sizes, which are followed, and numbers in
them, which no recording can follow."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from typing import Any

from ferrule.frontends.triton.recorded.followed import Followed, size_of, tree_of_number
from ferrule.frontends.triton.recorded.forms import Form, fits, is_compact
from ferrule.frontends.triton.recorded.log import Compared, Log, Read, place
from ferrule.frontends.triton.recorded.nodes import Leaf, Tree, is_float
from ferrule.frontends.triton.recorded.numbers.base import Number, plain
from ferrule.frontends.triton.recorded.numbers.floats import float_of
from ferrule.frontends.triton.recorded.numbers.viewed import Decision, Path, compare, same
from ferrule.frontends.triton.recorded.tensors import is_torch
from ferrule.specs.conditions import Real
from ferrule.specs.deferred import dataclass

Made = tuple[tuple[int, ...], Sequence[Tree]]
"""The sizes with which a tensor was made, and how they were."""


@dataclass(slots=True, eq=False)
class Reading:
    """The tensors that a host function has met.

    `names` are those that it was given, `others` those that it made, in their order, and `derived`
    the memory of those whose numbers are no constants of the host function, by its identity;
    `made` is that which it made, `shapes` how the sizes were made with which it did; `shared` is
    memory that others than PyTorch may write to, by the function that gave it.  `forms` are those
    of tensors that functions made, None where nothing is known; `views` are all that are known of
    a memory, and `wholes` its sizes.
    """

    log: Log = field(default_factory=Log)
    names: dict[int, str] = field(default_factory=dict)
    others: dict[int, int] = field(default_factory=dict)
    derived: set[int] = field(default_factory=set)
    made: set[int] = field(default_factory=set)
    kept: list[Any] = field(default_factory=list)
    shapes: dict[int, Made] = field(default_factory=dict)
    shared: dict[int, str] = field(default_factory=dict)
    forms: dict[int, Form | None] = field(default_factory=dict)
    views: dict[int, list[Form]] = field(default_factory=dict)
    wholes: dict[int, Sequence[Any]] = field(default_factory=dict)
    bases: dict[int, Any] = field(default_factory=dict)
    """The tensors of callers by their memory, from the beginning of which offsets count."""
    refilled: list[int] = field(default_factory=list)
    """Memory that the function which runs now has filled as a whole, and did not make."""
    paths: dict[int, tuple[Decision, ...]] = field(default_factory=dict)
    """What a call is compared for where strides are read that follow from others in no known way,
    by the identity of the tensor."""
    body: set[int] = field(default_factory=set)
    """Memory that the body of the `with` made.  If nothing says how, each call has sizes of its own
    for it, as for an argument."""
    filling: Tree | None = None
    """How the number was made with which a function fills a tensor now."""
    random: dict[int, str] = field(default_factory=dict)
    """Memory of random numbers, with the function of PyTorch that drew them."""

    def given(self, name: str, value: Any) -> Any:
        """An argument of the host function as it gets it."""
        if is_torch(value):
            self.names[id(value)] = name
            self.kept.append(value)
            self._take_memory(value)
        elif type(value) is int:
            return size_of(self.log, Leaf(name, ""), value)
        elif type(value) is float:
            return float_of(self.log, name, value)
        return value

    def forget(self) -> None:
        """What was made until now is the caller's: of its sizes nothing follows from others."""
        known = self.made, self.shapes, self.shared, self.forms, self.paths
        for each in (*known, self.views, self.wholes, self.bases):
            each.clear()

    def _take_memory(self, tensor: Any) -> None:
        """A tensor that the host function did not make is all that is known of its memory, if it is
        the first."""
        storage = _storage(tensor)
        if storage in self.made or storage in self.bases:
            return
        self.bases[storage] = tensor
        with sys.modules["torch"]._C.DisableTorchFunction():
            form = self.form(tensor)
        self.views[storage] = [form]
        self.wholes[storage] = form.shape

    def sizes(self, tensor: Any, kind: str, values: Sequence[int]) -> list[Any]:
        """Sizes or strides of a tensor as the host function reads them; a call is one in which the
        strides are made in the same way."""
        if kind == "stride":
            known = self._known(tensor)
            compare(self.paths.get(id(tensor), ()) if known is None else known.path)
        return self._sizes(tensor, kind, values)

    def _sizes(self, tensor: Any, kind: str, values: Sequence[int]) -> list[Any]:
        """Sizes or strides of a tensor: as they were made, else numbers of their own."""
        form = self._known(tensor)
        known = (form.shape if kind == "shape" else form.strides) if form is not None else ()
        if known and None not in known:
            if form is not None and kind != "shape":
                _ = [size == 0 for size in form.shape[1:]]  # of what is empty it is another one
            return list(known)
        self._take_memory(tensor)
        name = self.names.get(id(tensor)) or f"tensor {self._number(tensor)}"
        of, unknown = f"{name} of {len(values)}", self._is_unknown(tensor)
        opaque = id(tensor) in self.forms and id(tensor) not in self.names
        if self._is_base(tensor) and id(tensor) not in self.names:
            self.log.foreign[of] = _storage(tensor)
        return [
            size_of(self.log, Leaf(of, kind, axis, unknown, opaque), int(value))
            for axis, value in enumerate(values)
        ]

    def form(self, tensor: Any) -> Form:
        """The sizes and strides of a tensor."""
        shape = tuple(self._sizes(tensor, "shape", tuple(tensor.shape)))
        strides = tuple(self._sizes(tensor, "stride", tensor.stride()))
        known = self._known(tensor)
        if known is None:
            offset = 0 if id(tensor) in self.names or self._is_base(tensor) else None
            return Form(shape, strides, self.paths.get(id(tensor), ()), offset=offset)
        return Form(shape, strides, known.path, known.moves, known.offset)

    def offset(self, tensor: Any) -> Any:
        """Where a tensor begins in the one of which it is a view, in elements; None if nobody knows
        it.  A call is one in which the strides are made in the same way."""
        offset = self.form(tensor).offset
        if offset is None or isinstance(offset, Number):
            self.sizes(tensor, "stride", tensor.stride())
        return offset

    def hold_whole(self, tensor: Any, *, in_order: bool = False) -> None:
        """A tensor that is all of its memory, without room between its elements, is that in a call;
        `in_order`: and the elements are in the order of the dims."""
        form, sizes = self.form(tensor), self.wholes.get(_storage(tensor))
        if sizes is None or None in form.strides or form.offset is None:
            self.pin(tensor)
            return
        path = Path()
        path.asks_products("eq", form.shape, sizes)
        compare(path.decisions)
        if not in_order:
            dims = sorted(zip(form.shape, form.strides, strict=True), key=_by_stride)
            shape, strides = zip(*dims, strict=True) if dims else ((), ())
            form = replace(form, shape=shape, strides=strides)
        is_compact(form)

    def wholes_of(self, tensor: Any) -> Sequence[Any]:
        """The sizes of the memory of a tensor, as far as they are known."""
        return self.wholes.get(_storage(tensor), ())

    def pin(self, tensor: Any) -> None:
        """A call is one in which a tensor has the recorded sizes and strides."""
        compare(tuple(self._pins(tensor)))

    def trees(self, tensor: Any) -> list[Tree]:
        """How the sizes of a tensor were made."""
        sizes = self.sizes(tensor, "shape", tuple(tensor.shape))
        return [each.tree if isinstance(each, Followed) else int(each) for each in sizes]

    def make(self, tensor: Any, form: Form | None, of: Sequence[Any] = ()) -> None:
        """A function made a tensor, or a part of one, `of` others; None: of its sizes nothing is
        known."""
        self.kept.append(tensor)
        known = form if form is not None and fits(form, tensor) else None
        if known is None and (id(tensor) in self.names or id(tensor) in self.forms):
            return  # a function that gives its tensor back
        if known is not None and self._is_argument(tensor, known):
            return
        if known is None or None in known.strides:  # they follow from the others, nobody knows how
            path = tuple(each for other in of if other is not tensor for each in self._pins(other))
            self.paths[id(tensor)] = path
            known = None if known is None else replace(known, path=path)
        if known is not None and not self._begins(known, tensor):
            known = replace(known, offset=None)
        self.forms[id(tensor)] = known
        if known is not None:
            several = self.views.setdefault(_storage(tensor), [])
            if not any(_is_same(known, each) for each in several):
                several.append(known)

    def _pins(self, tensor: Any) -> Iterator[Decision]:
        """A tensor has the recorded sizes and strides, and begins where it did."""
        form = self.form(tensor)
        yield from form.path
        for each in (*form.shape, *form.strides, form.offset):
            if isinstance(each, Number):
                yield "eq", each, plain(each), True, None

    def _known(self, tensor: Any) -> Form | None:
        """Another object for the same tensor has its form, too: a backward function gets one."""
        if id(tensor) in self.names:
            return None
        if id(tensor) in self.forms:
            form = self.forms[id(tensor)]
            return form if form is not None and fits(form, tensor) else None
        views = self.views.get(_storage(tensor), ())
        several = [each for each in views if fits(each, tensor) and self._begins(each, tensor)]
        # Views that are made in other ways are others in a call.
        is_one = several and all(_is_same(several[0], each) for each in several)
        return several[0] if is_one else None

    def _begins(self, form: Form, tensor: Any) -> bool:
        """Whether a tensor begins where its form says."""
        base = self.bases.get(_storage(tensor))
        with sys.modules["torch"]._C.DisableTorchFunction():
            first = 0 if base is None else base.storage_offset()
            return form.offset is None or plain(form.offset) + first == tensor.storage_offset()

    def _is_base(self, tensor: Any) -> bool:
        return self.bases.get(_storage(tensor)) is tensor

    def _is_unknown(self, tensor: Any) -> bool:
        """Whether it is neither the caller's, nor made in a way that is known."""
        storage = _storage(tensor)
        is_named = id(tensor) in self.names or id(tensor) in self.forms
        is_view = storage in self.bases and not self._is_base(tensor)
        is_own = storage in self.made and storage not in self.body
        return not is_named and (is_view or is_own)

    def _is_argument(self, tensor: Any, form: Form) -> bool:
        """Whether the body made it of plain numbers, as one makes an argument."""
        numbers = (*form.shape, *form.strides, form.offset)
        is_plain = not any(isinstance(each, Number) for each in numbers)
        return is_plain and _storage(tensor) in self.body

    def _number(self, tensor: Any) -> int:
        if id(tensor) not in self.others:
            self.others[id(tensor)] = len(self.others)
            self.kept.append(tensor)
        return self.others[id(tensor)]

    def read(self, what: str, tensor: Any) -> None:
        """Something of a tensor was read that sizes do not tell."""
        by = self.drawn_by(tensor)
        other = f"a tensor of random numbers, by torch's {by}," if by else "a tensor"
        name = self.names.get(id(tensor), other)
        self.log.reads.append(Read(f"{what} of {name}", place()))

    def read_by(self, what: str, function: str) -> None:
        """Something was read by this function, of which PyTorch tells nobody."""
        self.log.reads.append(Read(f"{what} by {function}", place()))

    def share(self, tensor: Any, function: str) -> None:
        """A function gave the memory of a tensor to others than PyTorch."""
        self.shared.setdefault(_storage(tensor), function)

    def hold(self, number: Number) -> None:
        """A number that is made of sizes is what it is in the recording."""
        tree = tree_of_number(number)
        if tree is None:
            number.take()
        elif is_float(tree):
            held = Compared("same", tree, Real.of(number.number), True, place())
            self.log.compared.append(held)
        else:
            self.log.compared.append(Compared("eq", tree, number.number, True, place()))

    def derive(self, tensors: Iterator[Any], random: str = "") -> None:
        """The numbers in these tensors follow from something that a caller gives, or are `random`,
        by this function."""
        for each in tensors:
            self.derived.add(_storage(each))
            if random:
                self.random.setdefault(_storage(each), random)
            with sys.modules["torch"]._C.DisableTorchFunction():
                self.kept.append(each.untyped_storage())

    def drawn_by(self, tensor: Any) -> str:
        """The function of PyTorch that drew the numbers in a tensor; empty if none did."""
        return self.random.get(_storage(tensor), "")

    def settle(self, storage: int) -> None:
        """All of this memory is filled with one number, which is the same in every call."""
        self.derived.discard(storage)

    def shape(self, tensor: Any, sizes: Sequence[Any]) -> None:
        """A tensor was made with these sizes."""
        trees = [each.tree if isinstance(each, Followed) else int(each) for each in sizes]
        self.shapes[_storage(tensor)] = tuple(plain(list(sizes))), trees
        self.wholes[_storage(tensor)] = tuple(sizes)

    def is_made(self, tensor: Any) -> bool:
        """Whether the host function made the memory of a tensor."""
        return _storage(tensor) in self.made

    def is_derived(self, *tensors: Any) -> bool:
        """Whether the numbers in one of these tensors do."""
        return any(each in self.derived or each not in self.made for each in map(_storage, tensors))


def _is_same(one: Form, other: Form) -> bool:
    """Whether two forms are made in the same way."""
    several = ((*each.shape, *each.strides, each.offset) for each in (one, other))
    return all(map(same, *several)) if len(one.shape) == len(other.shape) else False


def _by_stride(dim: tuple[Any, Any]) -> int:
    return -int(plain(dim[1]))


def _storage(tensor: Any) -> int:
    with sys.modules["torch"]._C.DisableTorchFunction():  # we are no host function
        return int(tensor.untyped_storage()._cdata)


def tensors_in(value: Any) -> Iterator[Any]:
    """The tensors in arguments or results of a function of PyTorch."""
    if isinstance(value, tuple | list):
        for each in value:
            yield from tensors_in(each)
    elif is_torch(value):
        yield value
