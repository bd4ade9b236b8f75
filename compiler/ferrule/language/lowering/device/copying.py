"""`fe.copy` and the functions beside it: tensors copied by the instruction of an atom.

Source and target are copied atom by atom, their elements counted with the first mode fastest.  What
an atom takes at once has to be side by side and aligned, which is known while compiling or an
error; a copy in the background whose predicate is false writes zeros, any other one nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, Final

from ferrule.language import layouts
from ferrule.language.atoms import copies, mmas
from ferrule.language.atoms.copies import CopyAtom, TiledCopy
from ferrule.language.atoms.ops import (
    CopyG2SOp,
    CopyUniversalOp,
    LdMatrix8x8x16bOp,
    LoadCacheMode,
    StMatrix8x8x16bOp,
)
from ferrule.language.faces import tiles as faces
from ferrule.language.faces.pipelines.boxes import TmaAtom
from ferrule.language.ir import ops
from ferrule.language.ir.types import TensorType
from ferrule.language.lowering.arguments import Intrinsic, bound
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.descriptions import describe
from ferrule.language.lowering.device.threads import mask_of, place, require_kernel
from ferrule.language.lowering.numbers import coercion
from ferrule.language.lowering.tensors.moves import (
    autovec,
    guarded,
    move,
    parts,
    predicates,
    readable,
    vectorised,
)
from ferrule.language.lowering.tensors.runs import Readable, Runs, count_of
from ferrule.language.values import (
    ThreadSlice,
)
from ferrule.specs import AddressSpace, Boolean
from ferrule.specs.deferred import dataclass

_Args = list[Any]
_Kwargs = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Copy:
    """A copy of two tensors: `holds` gives the predicate of an atom, None for one without."""

    low: Lowering
    atom: CopyAtom
    source: Runs
    target: Runs
    holds: Callable[[int], Any]
    node: ast.AST


def _copy(low: Lowering, args: _Args, kwargs: _Kwargs, node: ast.Call) -> None:
    """`fe.copy(atom, src, dst, pred=None)`."""
    words = "atom src dst pred= unroll_factor= tma_bar_ptr= mcast_mask= tma_desc_ptr="
    given, source, target, pred, _, *of_boxes = bound(low, words, args, kwargs, node)
    if isinstance(given, TmaAtom):
        from ferrule.language.lowering.device import tma_atoms

        tma_atoms.copy(low, given, (source, target), of_boxes, node)
        return
    atom = _atom_of(low, given, node)
    one, two = (readable(low, name, t, node) for name, t in (("src", source), ("dst", target)))
    _require_dtypes(low, atom, one, two, node)
    values = atom.values
    per = int(layouts.size(values.source, [1])), int(layouts.size(values.target, [1]))
    counts = count_of(low, one, "the src of copy", node), count_of(low, two, "the dst", node)
    atoms = counts[0] // per[0]
    if counts[0] % per[0] or counts[1] % per[1] or counts[1] // per[1] != atoms:
        low.fail(
            node,
            f"copy of {counts[0]} elements of {one.name}, of layout {one.layout}, to {counts[1]} "
            f"of {two.name}, of layout {two.layout}",
            expected=f"whole atoms, of {per[0]} elements of the source and {per[1]} of the target",
        )
    task = _Copy(
        low,
        atom,
        Runs(low, one, node),
        Runs(low, two, node),
        predicates(low, pred, atoms, node),
        node,
    )
    low.state.writes += 1
    _EMIT[type(atom.op)](task, atoms, per)


def _atom_of(low: Lowering, given: Any, node: ast.AST) -> CopyAtom:
    tiled = given.of if isinstance(given, ThreadSlice) else given
    atom = tiled.atom if isinstance(tiled, TiledCopy) else tiled
    if isinstance(atom, CopyAtom) and type(atom.op) in _EMIT:
        return atom
    low.fail(
        node,
        f"the atom of copy is {describe(given)}",
        expected="the result of make_copy_atom, or a tiled copy",
    )


def _require_dtypes(
    low: Lowering, atom: CopyAtom, source: Readable, target: Readable, node: ast.AST
) -> None:
    for each in (source, target):
        if each.type.dtype is not atom.value_type:
            low.fail(
                node,
                f"a copy atom of {atom.value_type.name} copies {each.name}, whose elements are "
                f"{each.type.dtype.name}",
                expected="one dtype",
                hint="make the atom for it, or recast_tensor",
            )


# ---- one thread ----


def _universal(task: _Copy, atoms: int, per: tuple[int, int]) -> None:
    count = per[0]
    first = task.holds(0)
    if not task.atom.bits and first is None:
        vectorised(task.source, task.target, atoms * count)
        return
    for number in range(atoms):
        begin = number * count
        for runs in (task.source, task.target):
            if not runs.tensor.type.is_own:
                runs.require(begin, count, f"a copy of {task.atom.bits} bits")
        condition = first if number == 0 else task.holds(number)
        guarded(task.low, condition, move(task.source, task.target, begin, count))


# ---- in the background ----


def _async(task: _Copy, atoms: int, per: tuple[int, int]) -> None:
    low, node, count = task.low, task.node, per[0]
    require_kernel(low, "a copy by CopyG2SOp", node)
    spaces = task.source.tensor.type.space, task.target.tensor.type.space
    if spaces != (AddressSpace.gmem, AddressSpace.smem):
        low.fail(
            node,
            f"CopyG2SOp from {task.source.tensor.name} to {task.target.tensor.name}",
            expected="a source in global memory, and a target in shared memory",
        )
    mode: ops.CacheMode = "global" if task.atom.op.cache_mode is LoadCacheMode.GLOBAL else "always"
    for number in range(atoms):
        for runs in (task.source, task.target):
            runs.require(number * count, count, "a copy by CopyG2SOp")
        target, source = (r.view(number * count, count) for r in (task.target, task.source))
        condition = task.holds(number)
        holds = None if condition is None else coercion.convert(low, condition, Boolean).value
        low.builder.async_copy(target, source, count, mode, holds)


# ---- matrices of a warp ----


def _load_matrices(task: _Copy, atoms: int, per: tuple[int, int]) -> None:
    for number in range(atoms):
        rows = _rows(task, task.source, number, per[0])
        target, put = _fragment(task, task.target, number, per[1])
        where = mask_of(task.low, None, task.node), place(task.low, task.node)
        transposed = task.atom.op.transpose
        task.low.builder.load_matrix(target, rows, *where, transposed=transposed)
        put()


def _store_matrices(task: _Copy, atoms: int, per: tuple[int, int]) -> None:
    for number in range(atoms):
        rows = _rows(task, task.target, number, per[1])
        source, _ = _fragment(task, task.source, number, per[0], filled=True)
        where = mask_of(task.low, None, task.node), place(task.low, task.node)
        transposed = task.atom.op.transpose
        task.low.builder.store_matrix(rows, source, *where, transposed=transposed)


def _rows(task: _Copy, runs: Runs, number: int, count: int) -> ops.Value:
    """The row of a matrix that this lane points to."""
    name = type(task.atom.op).__name__
    require_kernel(task.low, f"a copy by {name}", task.node)
    if not runs.tensor.type.is_shared:
        task.low.fail(
            task.node,
            f"{name} accesses {runs.tensor.name}",
            expected="rows in shared memory",
        )
    if task.holds(number) is not None:
        task.low.fail(task.node, f"a copy by {name} has a pred: all lanes of a warp run it")
    runs.require(number * count, count, f"a row of {name}")
    return runs.view(number * count, count)


def _fragment(
    task: _Copy, runs: Runs, number: int, count: int, *, filled: bool = False
) -> tuple[ops.Value, Callable[[], None]]:
    """The registers of an atom, and what moves them to where they belong."""
    return gathered(task.low, runs, number * count, count, task.node, filled=filled)


def gathered(
    low: Lowering, runs: Runs, first: int, count: int, node: ast.AST, *, filled: bool
) -> tuple[ops.Value, Callable[[], None]]:
    """A fragment of elements in registers: a part of the tensor where they are side by side.

    `filled`: it has their values.  The function moves the values of the fragment to the tensor.
    """
    type_ = runs.tensor.type
    if not type_.is_own:
        low.fail(
            node,
            f"{runs.tensor.name} is not in registers",
            expected="a tensor of make_fragment or make_rmem_tensor",
        )
    if runs.side_by_side(first, count):
        return runs.view(first, count), lambda: None
    own = TensorType(type_.dtype, (count,), (1,), 16, AddressSpace.rmem)
    fragment = low.builder.fragment(own)
    if filled:
        for position, (run, at) in enumerate(parts(runs, first, count)):
            runs.store(fragment, position, runs.load(run, at).value)

    def put() -> None:
        for position in range(count):
            value = runs.load(fragment, position).value
            runs.store(runs.view(first + position, 1), 0, value)

    return fragment, put


_EMIT: Final[dict[type, Callable[[_Copy, int, tuple[int, int]], None]]] = {
    CopyUniversalOp: _universal,
    CopyG2SOp: _async,
    LdMatrix8x8x16bOp: _load_matrices,
    StMatrix8x8x16bOp: _store_matrices,
}


# ---- without an atom ----


def _basic(low: Lowering, args: _Args, kwargs: _Kwargs, node: ast.Call) -> None:
    """`fe.basic_copy(src, dst)`."""
    source, target = bound(low, "src dst", args, kwargs, node)
    autovec(low, source, target, None, node)


def _basic_if(low: Lowering, args: _Args, kwargs: _Kwargs, node: ast.Call) -> None:
    """`fe.basic_copy_if(pred, src, dst)`."""
    pred, source, target = bound(low, "pred src dst", args, kwargs, node)
    autovec(low, source, target, pred, node)


def _made(function: Callable[..., Any]) -> Intrinsic:
    """A function that makes an atom or a tiled copy: ordinary Python, of compile-time values."""

    def emit(low: Lowering, args: _Args, kwargs: _Kwargs, node: ast.Call) -> Any:
        from ferrule.language.lowering.numbers.sizes import as_dims
        from ferrule.language.lowering.tensors.coordinates import refusals

        given = [as_dims(low, value, node) for value in args]
        named = {name: as_dims(low, value, node) for name, value in kwargs.items()}

        def compute() -> Any:
            with refusals(low, node):
                return function(*given, **named)

        return coercion.at_compile_time(low, node, compute)

    return emit


_MADE: Final = (
    copies.make_copy_atom,
    copies.make_cotiled_copy,
    copies.make_tiled_copy,
    copies.make_tiled_copy_D,
    copies.make_tiled_copy_S,
    copies.make_tiled_copy_tv,
    mmas.make_mma_atom,
    mmas.make_tiled_copy_A,
    mmas.make_tiled_copy_B,
    mmas.make_tiled_copy_C,
    mmas.make_tiled_copy_C_atom,
    mmas.make_tiled_mma,
)
TABLE: Final[dict[Any, Intrinsic]] = {
    **{function: _made(function) for function in _MADE},
    faces.basic_copy: _basic,
    faces.basic_copy_if: _basic_if,
    faces.copy: _copy,
    faces.copy_atom_call: _copy,
}
"""The emitters of these functions."""
