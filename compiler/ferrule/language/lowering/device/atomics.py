"""`fe.arch.atomic_…`: atomic changes of elements."""

from __future__ import annotations

import ast
from typing import Any, Final, get_args

from ferrule.language.faces import threads as faces
from ferrule.language.ir import ops
from ferrule.language.ir.rules.threads import ATOMIC
from ferrule.language.lowering.arguments import Intrinsic, bound
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.descriptions import describe
from ferrule.language.lowering.device.threads import place, require_kernel
from ferrule.language.lowering.tensors import access
from ferrule.language.values import Number, PointerView, TensorView
from ferrule.specs import Int32


def _atomic(op: ops.AtomicOp) -> Intrinsic:
    name = f"atomic_{op}"
    words = f"ptr {'cmp ' if op == 'cas' else ''}val sem= scope="

    def emit(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Number:
        pointer, *given, sem, scope = bound(low, words, args, kwargs, node)
        require_kernel(low, name, node)
        _require_atomic(low, op, pointer, node)
        dtype = pointer.type.dtype
        *compare, new = (access.stored(low, dtype, x, pointer.name, node) for x in given)
        low.state.writes += 1
        return Number(
            low.builder.atomic(
                op,
                pointer.value,
                (low.builder.constant(Int32, 0),),
                new,
                compare[0] if compare else None,
                sem=_word(low, "sem", sem, "relaxed", get_args(ops.MemoryOrder), node),
                scope=_word(low, "scope", scope, "gpu", get_args(ops.MemoryScope), node),
                location=place(low, node),
            )
        )

    return emit


def _require_atomic(low: Lowering, op: ops.AtomicOp, pointer: Any, node: ast.Call) -> None:
    """Requires a pointer to elements that the op supports, in memory that other threads can
    access."""
    name = f"atomic_{op}"
    if not isinstance(pointer, PointerView):
        of = pointer.name if isinstance(pointer, TensorView) else "a"
        low.fail(
            node,
            f"{name} of {describe(pointer)}",
            expected="the pointer to an element",
            hint=f"{of}.iterator + i",
        )
    if pointer.type.is_own:
        low.fail(
            node,
            f"{name} of a fragment, which no other thread can reach",
            expected="a pointer into a tensor or shared memory",
        )
    if pointer.type.dtype not in ATOMIC[op]:
        low.fail(
            node,
            f"{name} of {pointer.name}, whose elements are {pointer.type.dtype.name}",
            expected="elements of " + ", ".join(dtype.name for dtype in ATOMIC[op]),
        )


def _word(
    low: Lowering, what: str, given: Any, default: str, known: tuple[str, ...], node: ast.Call
) -> Any:
    """One of the words that are valid for an argument."""
    word = default if given is None else given
    if word not in known:
        low.fail(
            node,
            f"{what} is {describe(given)}",
            expected=" or ".join(map(repr, known)),
        )
    return word


TABLE: Final[dict[Any, Intrinsic]] = {
    faces.atomic_add: _atomic("add"),
    faces.atomic_min: _atomic("min"),
    faces.atomic_max: _atomic("max"),
    faces.atomic_and: _atomic("and"),
    faces.atomic_or: _atomic("or"),
    faces.atomic_xor: _atomic("xor"),
    faces.atomic_exch: _atomic("exch"),
    faces.atomic_inc: _atomic("inc"),
    faces.atomic_dec: _atomic("dec"),
    faces.atomic_cas: _atomic("cas"),
}
"""The emitters of these functions."""
