"""Whether a part of a tensor is inside of it, for code of the host that uses all of the part.

The last tile of a tensor may reach over its end, and a tile may be taken at a coordinate that is
none.  A kernel guards against both.  A whole-tensor expression has no place for a guard, so such a
part is refused: by the compiler where it knows, else by the call.  For this, views remember how
they were made (`Part`).  The coordinates of their elements come from the same functions of layouts,
applied to a layout whose strides are coordinates.
"""

from __future__ import annotations

import ast

from ferrule.compiler.artefacts import Fault, literal
from ferrule.language import layouts
from ferrule.language.ir import ops
from ferrule.language.layouts import Layout, LayoutError, ScaledBasis
from ferrule.language.layouts.dims import same
from ferrule.language.layouts.tuples import leaves
from ferrule.language.lowering.context import Lowering, Part
from ferrule.language.values import Number, TensorView
from ferrule.specs import Dim, Int64
from ferrule.specs.deferred import dataclass
from ferrule.specs.expr import INT64_MAX, make
from ferrule.specs.intervals import interval


def require_inside(low: Lowering, tensor: TensorView, node: ast.AST) -> None:
    """Requires that all elements of a part are elements of the tensor that it is a part of.

    A CompileError where some are known not to be, else a check, which ends the call with an
    IndexError.
    """
    _require_ends(low, tensor, _places(low, tensor, node), node)


def require_element(
    low: Lowering, tensor: TensorView, at: tuple[Number | int, ...], node: ast.AST
) -> None:
    """Requires that there is an element at these indices, in the tensor that this one is a part
    of."""
    element = Part(tensor, tensor.layout, at=at)
    places = _moved(low, _places(low, tensor, node), element, node)
    places.layout = Layout((), ())
    _require_ends(low, tensor, places, node)


@dataclass(slots=True)
class _Extent:
    """A sum: a known number, sizes and values of the function, without the sizes `less`."""

    known: int = 0
    sizes: tuple[Dim, ...] = ()
    values: tuple[ops.Value, ...] = ()
    less: tuple[Dim, ...] = ()

    def __add__(self, other: _Extent) -> _Extent:
        return _Extent(
            self.known + other.known,
            (*self.sizes, *other.sizes),
            (*self.values, *other.values),
            (*self.less, *other.less),
        )

    @property
    def is_known(self) -> bool:
        """Whether the number is known while compiling."""
        return not (self.sizes or self.values or self.less)

    def is_at_most(self, other: _Extent) -> bool:
        """Whether this is known to be no more than another one."""
        one, two = self.sizes, other.sizes
        alike = len(one) == len(two) and all(map(same, one, two))
        simple = not (self.values or self.less or other.values or other.less)
        return alike and simple and self.known <= other.known

    def emit(self, low: Lowering) -> ops.Value:
        """The sum as a value."""
        build = low.builder
        total = build.constant(Int64, self.known)
        for each in (*(build.size(Int64, size) for size in self.sizes), *self.values):
            total = build.binary("add", total, each)
        for size in self.less:
            total = build.binary("sub", total, build.size(Int64, size))
        return total


def _extent(size: Dim) -> _Extent:
    return _Extent(size) if isinstance(size, int) else _Extent(0, (size,))


def _without(size: Dim) -> _Extent:
    return _Extent(-size) if isinstance(size, int) else _Extent(less=(size,))


@dataclass(slots=True)
class _Places:
    """Where the elements of a part are in a tensor, the root.

    `layout`: from the part to coordinates of the root, whose dims are flat.  `begins`: the
    coordinate of the part's first element.  `ragged`: the dims of the root over whose end the part
    may reach.
    """

    root: TensorView
    layout: Layout
    begins: tuple[_Extent, ...]
    ragged: frozenset[int] = frozenset()

    def extent(self, dim: int) -> _Extent:
        """How far the elements reach along a dim of the root, counted from the first one."""
        total = _Extent(1)
        flat = zip(leaves(self.layout.shape), leaves(self.layout.stride), strict=True)
        for size, stride in flat:
            if isinstance(stride, ScaledBasis) and stride.mode == (dim,):
                steps = _extent(make("mul", size, stride.value))
                total = total + steps + _without(stride.value)
        return total


def _itself(tensor: TensorView) -> _Places:
    """A tensor that is no part, or whose elements were required to be there."""
    rank = len(tensor.type.shape)
    units = tuple(ScaledBasis(1, dim) for dim in range(rank))
    return _Places(tensor, _nested(tensor, units), (_Extent(),) * rank)


def _nested(tensor: TensorView, strides: tuple[object, ...]) -> Layout:
    """The flat strides in the profile of the tensor's layout."""
    shape = tensor.layout.shape
    return Layout(shape, layouts.unflatten(strides, shape))


def _places(low: Lowering, tensor: TensorView, node: ast.AST) -> _Places:
    """The places of a tensor's elements; requires all indices on the way to be in range."""
    part = low.state.parts.get(tensor.value)
    if part is None:
        return _itself(tensor)
    before = _places(low, part.of, node)
    found = _rearranged(part, _moved(low, before, part, node))
    if found is None:
        _require_ends(low, part.of, before, node)
        _require_no_more(low, tensor, part, node)
        return _itself(tensor)
    strides = tuple(leaves(found.layout.stride))
    return _Places(found.root, _nested(tensor, strides), found.begins, found.ragged)


def _moved(low: Lowering, before: _Places, part: Part, node: ast.AST) -> _Places:
    """The places from the element on at which a part begins."""
    begins, ragged = list(before.begins), set(before.ragged)
    axes = zip(part.at, leaves(before.layout.shape), leaves(before.layout.stride), strict=False)
    for axis, (index, size, stride) in enumerate(axes):
        if index is None or (part.keeps_shape and isinstance(index, int) and index == 0):
            continue
        step = _index(low, part.of, axis, index, size, node)
        if isinstance(stride, ScaledBasis):
            (dim,) = stride.mode
            begins[dim] = begins[dim] + _scaled(low, step, stride.value)
            ragged |= {dim} if part.keeps_shape else set()
    return _Places(before.root, before.layout, tuple(begins), frozenset(ragged))


def _index(
    low: Lowering, of: TensorView, axis: int, index: Number | int, size: Dim, node: ast.AST
) -> _Extent:
    """An index, which is required to be in range; a known one is not negative."""
    if isinstance(index, int) and index < interval(size)[0]:
        return _Extent(index)
    build, room = low.builder, low.builder.size(Int64, size)
    if isinstance(index, int):
        value = build.constant(Int64, index)
        inside = build.compare("lt", value, room)
    else:
        value = build.cast(Int64, index.value)
        begins = build.compare("ge", value, build.constant(Int64, 0))
        inside = build.binary("and", begins, build.compare("lt", value, room))
    name = f"a view of {of.name}" if of.value in low.state.parts else of.name
    text = f"index {{}} is out of range for dim {axis} of {literal(name)}, which has {{}}"
    build.check(inside, Fault("IndexError", text, low.location(node)), value, room)
    return _Extent(index) if isinstance(index, int) else _Extent(values=(value,))


def _scaled(low: Lowering, by: _Extent, step: Dim) -> _Extent:
    """A number of steps; it is an index in range, so that no product wraps."""
    if not by.values:
        return _extent(make("mul", by.known, step))
    (value,) = by.values
    if step == 1:
        return by
    return _Extent(values=(low.builder.binary("mul", value, low.builder.size(Int64, step)),))


def _rearranged(part: Part, before: _Places) -> _Places | None:
    """The places in the layout of a part; None if they cannot be told from the layouts."""
    if part.arrange is None:
        return None
    try:
        layout = part.arrange(before.layout)
    except LayoutError:
        return None
    strides = tuple(leaves(layout.stride))
    if tuple(leaves(layout.shape)) != tuple(leaves(part.layout.shape)):
        return None
    if not all(isinstance(each, ScaledBasis) or each == 0 for each in strides):
        return None
    found = _Places(before.root, layout, before.begins, before.ragged)
    if part.at:
        return found  # without some dims it reaches no further
    dims = range(len(before.begins))
    longer = {dim for dim in dims if not found.extent(dim).is_at_most(before.extent(dim))}
    return _Places(before.root, layout, before.begins, before.ragged | longer)


def _require_no_more(low: Lowering, tensor: TensorView, part: Part, node: ast.AST) -> None:
    """Requires that a part without known coordinates has only elements of its tensor."""
    sizes = layouts.size(part.layout), layouts.size(part.of.layout)
    if part.has_no_others or same(*sizes):
        return
    low.fail(
        node,
        f"all of {tensor.name} is used, but it is not known whether its elements are all in "
        f"{part.of.name}: its layout is {part.layout}, that of {part.of.name} is {part.of.layout}",
        expected="a part of which each dim is a part of one dim",
        hint="write a kernel with a guard, or say in the example by what its sizes are divisible",
    )


def _require_ends(low: Lowering, tensor: TensorView, places: _Places, node: ast.AST) -> None:
    """Requires that a part ends inside of its root."""
    for dim in sorted(places.ragged):
        size = places.root.type.shape[dim]
        end = places.begins[dim] + places.extent(dim)
        if end.is_at_most(_extent(size)) or size == INT64_MAX:
            continue
        name, root = tensor.name, places.root.name
        what = f"{name if name != root else f'a view of {name}'} reaches"
        of = f"of dim {dim} of {root}, which has"
        if isinstance(size, int) and end.is_known:
            low.fail(
                node,
                f"{what} element {end.known - 1} {of} {size}",
                hint="write a kernel with a guard against the last tile's elements over the end",
            )
        build = low.builder
        last = _Extent(-1) + end
        values = last.emit(low), build.size(Int64, size)
        text = f"{literal(what)} element {{}} {literal(of)} {{}}"
        fault = Fault("IndexError", text, low.location(node))
        build.check(build.compare("lt", *values), fault, *values)
