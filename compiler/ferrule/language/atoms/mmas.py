"""Atoms of matrix multiplications, and tiled ones: which elements of A, B and C each thread has."""

from __future__ import annotations

from typing import Any, Final

from ferrule.language.atoms.copies import CopyAtom, TiledCopy, make_tiled_copy
from ferrule.language.faces.base import outside
from ferrule.language.layouts import (
    Layout,
    composition,
    left_inverse,
    logical_divide,
    make_layout,
    right_inverse,
    size,
    tiled_product,
    zipped_divide,
)
from ferrule.language.layouts import filter as filter_layout
from ferrule.language.layouts.errors import refuse
from ferrule.language.layouts.layout import join, modes_of
from ferrule.language.layouts.tuples import format_tuple
from ferrule.specs.deferred import dataclass

MODES: Final = {"A": (0, 2), "B": (1, 2), "C": (0, 1)}
"""The modes of M, N, K that a matrix has."""


@dataclass(frozen=True, slots=True, repr=False)
class MmaAtom:
    """One instruction that multiplies matrices; `make_mma_atom` makes one."""

    op: Any

    @property
    def shape_mnk(self) -> tuple[int, int, int]:
        """The sizes of one multiplication."""
        m, n, k = self.op.shape_mnk
        return m, n, k

    @property
    def thr_id(self) -> Layout:
        """The threads that run it together."""
        threads: Layout = self.op.threads
        return threads

    @property
    def tv_layout_A(self) -> Layout:
        """From (thread, value) to the element of A."""
        return self.values("A")

    @property
    def tv_layout_B(self) -> Layout:
        """From (thread, value) to the element of B."""
        return self.values("B")

    @property
    def tv_layout_C(self) -> Layout:
        """From (thread, value) to the element of C."""
        return self.values("C")

    def values(self, matrix: str) -> Layout:
        """From (thread, value) to the element of a matrix."""
        found: Layout = self.op.values(matrix)
        return found

    def __repr__(self) -> str:
        rows = {
            "ThrID:": self.thr_id,
            "Shape MNK:": format_tuple(self.shape_mnk),
            **{f"TV Layout {m}:": self.values(m) for m in MODES},
        }
        return "MMA Atom\n" + "\n".join(f"  {key:<15}{value}" for key, value in rows.items())

    def __str__(self) -> str:
        return repr(self)


@dataclass(frozen=True, slots=True, repr=False)
class TiledMma:
    """An atom repeated over threads and values; `make_tiled_mma` makes one.

    `atom_layout`: how many atoms run side by side along M, N and K, and in which order their
    threads count.  `permutation_mnk`: the size, or the layout, of a tile of each mode; None is what
    the atoms cover.
    """

    atom: MmaAtom
    atom_layout: Layout
    permutation_mnk: tuple[Any, Any, Any]

    @property
    def op(self) -> Any:
        """What the atom is."""
        return self.atom.op

    @property
    def shape_mnk(self) -> tuple[int, int, int]:
        """The sizes of one multiplication."""
        return self.atom.shape_mnk

    @property
    def thr_id(self) -> Layout:
        """The threads that run an atom together."""
        return self.atom.thr_id

    @property
    def tv_layout_A(self) -> Layout:
        """From (thread, value) to the element of A, of an atom."""
        return self.atom.values("A")

    @property
    def tv_layout_B(self) -> Layout:
        """From (thread, value) to the element of B, of an atom."""
        return self.atom.values("B")

    @property
    def tv_layout_C(self) -> Layout:
        """From (thread, value) to the element of C, of an atom."""
        return self.atom.values("C")

    @property
    def thr_layout_vmnk(self) -> Layout:
        """From (thread of an atom, atom along M, N, K) to the number of the thread."""
        return tiled_product(self.atom.thr_id, self.atom_layout)

    @property
    def size(self) -> int:
        """The number of threads."""
        return int(size(self.thr_layout_vmnk))

    @property
    def tv_layout_A_tiled(self) -> Layout:
        """From (thread, value) to the element of a tile of A."""
        return layout_of_tile(self, "A")

    @property
    def tv_layout_B_tiled(self) -> Layout:
        """From (thread, value) to the element of a tile of B."""
        return layout_of_tile(self, "B")

    @property
    def tv_layout_C_tiled(self) -> Layout:
        """From (thread, value) to the element of a tile of C."""
        return layout_of_tile(self, "C")

    def get_slice(self, thr_idx: Any) -> Any:
        """What one thread has: an object with `partition_A`, `partition_B` and `partition_C`."""
        outside("tiled_mma.get_slice")

    def make_fragment_A(self, input: Any) -> Any:
        """Registers for a thread's part of A, or for one of this shape."""
        outside("tiled_mma.make_fragment_A")

    def partition_shape_A(self, shape: Any) -> Any:
        """The shape of a thread's part of A: (values, tiles, tiles)."""
        return shape_of_part(self, shape, "A")

    def make_fragment_B(self, input: Any) -> Any:
        """Registers for a thread's part of B, or for one of this shape."""
        outside("tiled_mma.make_fragment_B")

    def partition_shape_B(self, shape: Any) -> Any:
        """The shape of a thread's part of B: (values, tiles, tiles)."""
        return shape_of_part(self, shape, "B")

    def make_fragment_C(self, input: Any) -> Any:
        """Registers for a thread's part of C, or for one of this shape."""
        outside("tiled_mma.make_fragment_C")

    def partition_shape_C(self, shape: Any) -> Any:
        """The shape of a thread's part of C: (values, tiles, tiles)."""
        return shape_of_part(self, shape, "C")

    def get_tile_size(self, mode: int) -> int:
        """The size of a tile of M, N or K."""
        permutation = self.permutation_mnk[mode]
        if permutation is None:
            atoms = int(size(self.thr_layout_vmnk, [mode + 1]))
            return self.shape_mnk[mode] * atoms
        return int(size(permutation) if isinstance(permutation, Layout) else permutation)

    def __repr__(self) -> str:
        tiles = (
            "_" if p is None else str(p if isinstance(p, Layout) else Layout(p, 1))
            for p in self.permutation_mnk
        )
        head = f"Tiled MMA\n  Thr Layout VMNK: {self.thr_layout_vmnk}\n"
        return f"{head}  Permutation MNK: {format_tuple(tuple(tiles))}\n{self.atom!r}"

    def __str__(self) -> str:
        return repr(self)


def make_mma_atom(op: Any) -> MmaAtom:
    """An instruction that multiplies matrices."""
    if not hasattr(op, "shape_mnk") or not hasattr(op, "dtypes"):
        refuse("make_mma_atom", f"the operation is {op!r}", "give one such as MmaF16BF16Op(...)")
    return MmaAtom(op)


def make_tiled_mma(
    op_or_atom: Any, atom_layout_mnk: Any = (1, 1, 1), permutation_mnk: Any = None
) -> TiledMma:
    """An atom repeated along M, N and K, in tiles of a size or layout for each of them.

    Raises LayoutError if a tile is not made of whole atoms.
    """
    atom = op_or_atom if isinstance(op_or_atom, MmaAtom) else make_mma_atom(op_or_atom)
    given = atom_layout_mnk
    layout = given if isinstance(given, Layout) else make_layout(tuple(given))
    if len(layout) != 3 or len(permutation_mnk or (0,) * 3) != 3:
        refuse(
            "make_tiled_mma",
            f"atoms {layout} with the permutation {permutation_mnk}",
            "give three of each, for M, N and K",
        )
    tiled = TiledMma(atom, layout, tuple(permutation_mnk or (None,) * 3))
    for mode, name in enumerate("MNK"):
        atoms = size(layout, [mode])
        if tiled.get_tile_size(mode) % (tiled.shape_mnk[mode] * atoms) != 0:
            refuse(
                "make_tiled_mma",
                f"a tile of {tiled.get_tile_size(mode)} along {name} is no multiple of {atoms} "
                f"atoms of {tiled.shape_mnk[mode]}",
                "give a multiple as permutation_mnk, or None",
            )
    return tiled


def make_tiled_copy_A(atom: CopyAtom, tiled_mma: TiledMma) -> TiledCopy:
    """A copy whose threads have the elements of A that they multiply."""
    return _copy_of(atom, tiled_mma, "A")


def make_tiled_copy_B(atom: CopyAtom, tiled_mma: TiledMma) -> TiledCopy:
    """A copy whose threads have the elements of B that they multiply."""
    return _copy_of(atom, tiled_mma, "B")


def make_tiled_copy_C(atom: CopyAtom, tiled_mma: TiledMma) -> TiledCopy:
    """A copy whose threads have the elements of C that they add to."""
    return _copy_of(atom, tiled_mma, "C")


def make_tiled_copy_C_atom(atom: CopyAtom, tiled_mma: TiledMma) -> TiledCopy:
    """A copy of as many elements of C at once as an atom takes, in the order in which threads have
    them: its tile is what one atom of each thread covers."""
    name = "make_tiled_copy_C_atom"
    for value, wanted in ((atom, CopyAtom), (tiled_mma, TiledMma)):
        if not isinstance(value, wanted):
            refuse(name, f"a {type(value).__name__}", f"give a {wanted.__name__}")
    whole = layout_of_tile(tiled_mma, "C")
    count = int(size(atom.values.source, [1]))
    first = make_layout((int(size(whole, [0])), count))
    own = composition(whole, first, operation=name)
    m, n = (tiled_mma.get_tile_size(mode) for mode in MODES["C"])
    tiler = tuple(
        filter_layout(composition(Layout((m, n), units), own, operation=name))
        for units in ((1, 0), (0, 1))
    )
    there = composition(make_layout((m, n)), tiler, operation=name)
    return make_tiled_copy(atom, composition(left_inverse(there), own, operation=name), tiler)


def _copy_of(atom: CopyAtom, tiled: TiledMma, matrix: str) -> TiledCopy:
    if not isinstance(tiled, TiledMma):
        refuse(f"make_tiled_copy_{matrix}", f"{tiled!r}", "give the result of make_tiled_mma")
    tiler = tuple(tiled.get_tile_size(mode) for mode in MODES[matrix])
    return make_tiled_copy(atom, layout_of_tile(tiled, matrix), tiler)


def _thread_values(tiled: TiledMma, layout: Layout, matrix: str) -> tuple[Layout, ...]:
    """Threads of an atom, atoms along both modes, values of an atom, and tiles of these."""
    name = f"a partition of {matrix}"
    modes, shape = MODES[matrix], tiled.shape_mnk
    atoms = tuple(size(tiled.thr_layout_vmnk, [mode + 1]) for mode in modes)
    tiles = tuple(tiled.permutation_mnk[m] or tiled.get_tile_size(m) for m in modes)
    permuted = logical_divide(layout, tiles)
    own, rest = modes_of(zipped_divide(permuted, tuple(shape[mode] for mode in modes)))
    threads, values = modes_of(composition(own, tiled.atom.values(matrix), operation=name))
    across, repeats = modes_of(zipped_divide(rest, atoms))
    return threads, across, values, repeats


def partitioned(tiled: TiledMma, layout: Layout, matrix: str) -> Layout:
    """A layout of a matrix as (threads of an atom, atoms, values, tiles of the first mode, ...)."""
    threads, across, values, repeats = _thread_values(tiled, layout, matrix)
    return join([threads, across, values, *modes_of(repeats)])


def layout_of_tile(tiled: TiledMma, matrix: str) -> Layout:
    """From (thread, value) to the elements of a tile of a matrix."""
    shape = tuple(tiled.get_tile_size(mode) for mode in MODES[matrix])
    threads, across, values, repeats = _thread_values(tiled, make_layout(shape), matrix)
    counts = tuple(size(tiled.thr_layout_vmnk, [mode + 1]) for mode in range(3))
    first, second = modes_of(across)
    places = {MODES[matrix][0]: first, MODES[matrix][1]: second}
    # Threads of the mode that the matrix lacks have the same elements.
    atoms = [places.get(mode, Layout(counts[mode], 0)) for mode in range(3)]
    of_number = right_inverse(tiled.thr_layout_vmnk)
    all_threads = composition(join([threads, *atoms]), of_number, operation="a tiled mma")
    return join([all_threads, join([values, repeats])])


def shape_of_part(tiled: TiledMma, shape: Any, matrix: str) -> Any:
    """The shape of a thread's part of a matrix of this shape: (values, tiles along ...)."""
    parts = partitioned(tiled, make_layout(tuple(shape)), matrix)
    return tuple(mode.shape for mode in modes_of(parts)[2:])
