"""Copy atoms and tiled copies: which elements of a tile each thread copies."""

from __future__ import annotations

from typing import Any

from ferrule.language.atoms.ops import CopyValues
from ferrule.language.faces.base import outside
from ferrule.language.layouts import (
    Layout,
    coalesce,
    composition,
    left_inverse,
    logical_product,
    make_layout,
    make_layout_tv,
    product_each,
    right_inverse,
    size,
    zipped_divide,
)
from ferrule.language.layouts import filter as filter_layout
from ferrule.language.layouts.errors import LayoutError, refuse
from ferrule.language.layouts.layout import join, modes_of
from ferrule.language.layouts.tuples import format_tuple
from ferrule.specs import DType
from ferrule.specs.deferred import dataclass


@dataclass(frozen=True, slots=True, repr=False)
class CopyAtom:
    """One copy instruction; `make_copy_atom` makes one.

    `op`: what it is; `value_type`: of elements of this dtype; `bits`: as many at once, 0 where they
    were left to the layouts.
    """

    op: Any
    value_type: DType
    bits: int

    @property
    def values(self) -> CopyValues:
        """The layouts of its values."""
        found: CopyValues = self.op.values(self.value_type, self.bits)
        return found

    @property
    def thr_id(self) -> Layout:
        """The threads that run it together."""
        return self.values.threads

    @property
    def layout_src_tv(self) -> Layout:
        """From (thread, value) to what a thread reads."""
        return self.values.source

    @property
    def layout_dst_tv(self) -> Layout:
        """From (thread, value) to what a thread writes."""
        return self.values.target

    def __repr__(self) -> str:
        return "Copy Atom\n" + _atom_text(self, "")

    def __str__(self) -> str:
        return repr(self)


def _atom_text(atom: CopyAtom, pad: str) -> str:
    short = {"float": "f", "int": "i", "uint": "u"}.get(atom.value_type.kind)
    name = f"{short}{atom.value_type.bits}" if short else atom.value_type.name
    name = "bf16" if atom.value_type.name == "bfloat16" else name
    rows = {
        "ThrID:": atom.thr_id,
        "TV Layout Src:": atom.layout_src_tv,
        "TV Layout Dst:": atom.layout_dst_tv,
        "Value type:": name,
    }
    return "\n".join(f"  {key + pad:<15}{value}" for key, value in rows.items())


@dataclass(frozen=True, slots=True, repr=False)
class TiledCopy:
    """An atom repeated over threads and values: from (thread, value) to an element of a tile.

    `tiler`: the shape of the tile, or layouts, for each of its modes.
    """

    atom: CopyAtom
    layout_tv_tiled: Layout
    tiler: tuple[Any, ...]

    @property
    def op(self) -> Any:
        """What the atom is."""
        return self.atom.op

    @property
    def value_type(self) -> DType:
        """The dtype of the elements."""
        return self.atom.value_type

    @property
    def thr_id(self) -> Layout:
        """The threads that run an atom together."""
        return self.atom.thr_id

    @property
    def layout_src_tv(self) -> Layout:
        """From (thread, value) to what a thread of the atom reads."""
        return self.atom.layout_src_tv

    @property
    def layout_dst_tv(self) -> Layout:
        """From (thread, value) to what a thread of the atom writes."""
        return self.atom.layout_dst_tv

    @property
    def size(self) -> int:
        """The number of threads."""
        return int(size(self.layout_tv_tiled, [0]))

    @property
    def tiler_mn(self) -> tuple[Layout, ...]:
        """The tile, a layout for each mode."""
        return tuple(t if isinstance(t, Layout) else Layout(t, 1) for t in self.tiler)

    @property
    def layout_src_tv_tiled(self) -> Layout:
        """From (thread, value) to the element that a thread reads."""
        return _pairs(self, self.atom.values.source)

    @property
    def layout_dst_tv_tiled(self) -> Layout:
        """From (thread, value) to the element that a thread writes."""
        return _pairs(self, self.atom.values.target)

    def get_slice(self, thr_idx: Any) -> Any:
        """What one thread has: an object with `partition_S`, `partition_D` and `retile`."""
        outside("tiled_copy.get_slice")

    def retile(self, tensor: Any) -> Any:
        """The values of a thread, in the order of this copy."""
        outside("tiled_copy.retile")

    def __repr__(self) -> str:
        tiler = format_tuple(tuple(map(str, self.tiler_mn)))
        head = (
            f"Tiled Copy\n  Tiler MN:        {tiler}\n  TV Layout tiled: {self.layout_tv_tiled}\n"
        )
        return head + repr(self.atom)

    def __str__(self) -> str:
        return repr(self)


def make_copy_atom(
    op: Any, copy_internal_type: Any, *, num_bits_per_copy: int | None = None, **options: Any
) -> CopyAtom:
    """A copy instruction for elements of a dtype.

    `num_bits_per_copy`: what one thread copies at once; by default one element, which a copy
    without predicates makes as wide as the layouts allow.  Raises LayoutError for what the
    operation does not do.
    """
    if not hasattr(op, "values") or not hasattr(op, "collective"):
        refuse("make_copy_atom", f"the operation is {op!r}", "give one such as CopyUniversalOp()")
    if not isinstance(copy_internal_type, DType):
        refuse("make_copy_atom", f"the dtype is {copy_internal_type!r}", "give fe.Float16 or such")
    if options:
        refuse("make_copy_atom", f"{', '.join(sorted(options))} cannot be chosen", "leave it out")
    bits = num_bits_per_copy or 0
    if isinstance(bits, bool) or not isinstance(bits, int) or bits < 0:
        refuse("make_copy_atom", f"num_bits_per_copy is {num_bits_per_copy!r}", "give an int")
    atom = CopyAtom(op, copy_internal_type, bits)
    _ = atom.values
    return atom


def make_tiled_copy(atom: CopyAtom, layout_tv: Layout, tiler_mn: Any) -> TiledCopy:
    """An atom repeated so that (thread, value) has the element of the tile that a layout gives.

    Raises LayoutError unless threads and values are whole atoms.
    """
    _require_atom("make_tiled_copy", atom)
    reference = atom.values.reference
    for mode, what in enumerate(("threads", "values")):
        have, need = size(layout_tv, [mode]), size(reference, [mode])
        if have % need != 0:
            refuse(
                "make_tiled_copy",
                f"{layout_tv} has {have} {what}, but an atom of {type(atom.op).__name__} has "
                f"{need}",
                f"take a multiple of {need} {what}, in the order of the atom",
            )
    tiler = tiler_mn if isinstance(tiler_mn, tuple) else (tiler_mn,)
    return TiledCopy(atom, layout_tv, tiler)


def make_tiled_copy_tv(atom: CopyAtom, thr_layout: Layout, val_layout: Layout) -> TiledCopy:
    """An atom repeated over threads and values that are arranged in a tile; see make_layout_tv."""
    tiler, layout = make_layout_tv(thr_layout, val_layout)
    return make_tiled_copy(atom, layout, tiler)


def make_tiled_copy_S(atom: CopyAtom, tiled_copy: TiledCopy) -> TiledCopy:
    """A copy whose threads have the elements that another one reads."""
    return make_tiled_copy(atom, tiled_copy.layout_src_tv_tiled, tiled_copy.tiler)


def make_tiled_copy_D(atom: CopyAtom, tiled_copy: TiledCopy) -> TiledCopy:
    """A copy whose threads have the elements that another one writes."""
    return make_tiled_copy(atom, tiled_copy.layout_dst_tv_tiled, tiled_copy.tiler)


def make_cotiled_copy(atom: CopyAtom, atom_layout_tv: Layout, data_layout: Layout) -> TiledCopy:
    """A copy of a tensor with this layout, of which (thread, value) is at the offset that a layout
    gives: threads have what lies side by side in memory, whatever its coordinates.

    Raises LayoutError where an offset is none of the tensor's.
    """
    name = "make_cotiled_copy"
    _require_atom(name, atom)
    for given in (atom_layout_tv, data_layout):
        if not isinstance(given, Layout):
            refuse(name, f"the layout is {given!r}", "give the result of make_layout")
    offsets, wanted = (
        {layout(i) for i in range(int(size(layout)))} for layout in (data_layout, atom_layout_tv)
    )
    if not wanted <= offsets:
        refuse(
            name,
            f"{atom_layout_tv} has offsets that {data_layout} has not, such as "
            f"{min(wanted - offsets)}",
            "give offsets of elements of the tensor",
        )
    there = composition(left_inverse(data_layout), atom_layout_tv, operation=name)
    sizes = product_each(data_layout.shape)
    tiler = tuple(
        filter_layout(composition(Layout(sizes, units), there, operation=name))
        for units in (tuple(int(i == j) for j in range(len(sizes))) for i in range(len(sizes)))
    )
    of_tile = composition(make_layout(sizes), tiler, operation=name)
    own = composition(left_inverse(of_tile), there, operation=name)
    return make_tiled_copy(atom, own, tiler)


def _require_atom(name: str, atom: Any) -> None:
    if not isinstance(atom, CopyAtom):
        refuse(name, f"the atom is {atom!r}", "give the result of make_copy_atom")


def _thread_values(tiled: TiledCopy, target: Layout) -> tuple[Layout, Layout]:
    """Threads, and values as (those of an atom, the others), each to elements of the tile."""
    reference = tiled.atom.values.reference
    counts = size(reference, [0]), size(reference, [1])
    atoms, rest = modes_of(zipped_divide(tiled.layout_tv_tiled, counts))
    to_target = composition(right_inverse(reference), target, operation="a tiled copy")
    own = modes_of(composition(atoms, to_target, operation="a tiled copy"))
    others = modes_of(rest)
    threads = coalesce(join([own[0], others[0]]))
    return threads, join([coalesce(own[1]), coalesce(others[1])])


def _pairs(tiled: TiledCopy, target: Layout) -> Layout:
    return join(_thread_values(tiled, target))


def partitioned(tiled: TiledCopy, layout: Layout, target: Layout) -> Layout:
    """A layout as (threads, values, tiles of the first mode, ...)."""
    tile, rest = modes_of(zipped_divide(layout, tiled.tiler))
    pairs = composition(tile, _pairs(tiled, target), operation="a partition")
    threads, values = modes_of(pairs)
    return join([threads, values, *modes_of(rest)])


def retiled(tiled: TiledCopy, layout: Layout) -> Layout:
    """The values of a thread, as (values of an atom, its repetitions), repetitions of tiles.

    `layout`: the values of one tile in the first mode, tiles in the others.
    """
    name = "retile"
    wanted = len(tiled.tiler_mn) + 1
    if len(layout) < wanted:
        refuse(
            name,
            f"the fragment {layout} has {len(layout)} modes, but the tile of the copy has "
            f"{wanted - 1}",
            f"give one of {wanted} modes, (values, tiles of each mode), as partitions have",
        )
    count = size(layout, [0])
    whole = right_inverse(tiled.layout_tv_tiled)
    shape = make_layout(product_each(tuple(each.shape for each in tiled.tiler_mn)))
    places = composition(whole, shape, operation=name)
    fragment = _chunked(places, tiled.size * int(count))
    per_atom = size(tiled.atom.values.reference, [1])
    order = logical_product(Layout(count, 1), right_inverse(fragment))
    values = zipped_divide(order, per_atom)
    tiles = (count, *product_each(fragment.shape))
    own, rest = modes_of(_divided_for_retile(layout, tiles))
    arranged = composition(own, values, operation=name)
    return join([arranged, *modes_of(rest)[1:]])


def _divided_for_retile(layout: Layout, tiles: tuple[Any, ...]) -> Layout:
    """The fragment in tiles of the copy.  Raises LayoutError, which names `retile`."""
    try:
        return zipped_divide(layout, tiles)
    except LayoutError as error:
        refuse("retile", f"the fragment {layout} does not divide into tiles of {tiles}: {error}")


def _chunked(layout: Layout, group: int) -> Layout:
    """The layout in chunks of this many indices: each index becomes that of its chunk."""
    if isinstance(layout.shape, tuple):
        return join([_chunked(mode, group) for mode in modes_of(layout)])
    extent, stride = int(layout.shape), int(layout.stride)
    if stride % group == 0:
        return Layout(extent, stride // group)
    inside = group // stride
    if group % stride or (extent % inside and inside % extent):
        refuse("retile", f"the mode {layout} does not divide into chunks of {group} indices")
    chunks = max(extent // inside, 1)
    return Layout(chunks, 1 if chunks > 1 else 0)
