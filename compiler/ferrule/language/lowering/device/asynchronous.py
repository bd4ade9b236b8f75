"""`fe.arch.cp_async…` and `griddepcontrol_…`: asynchronous work."""

from __future__ import annotations

import ast
from typing import Any, Final, get_args

from ferrule.language.faces import asynchronous as faces
from ferrule.language.ir import ops
from ferrule.language.ir.asynchronous import COPY_BYTES
from ferrule.language.lowering.arguments import Intrinsic, bound
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.descriptions import describe
from ferrule.language.lowering.device.shared_memory import shared_pointer
from ferrule.language.lowering.device.threads import require_kernel
from ferrule.language.lowering.numbers import coercion
from ferrule.language.lowering.tensors import access
from ferrule.language.values import PointerView, TensorView
from ferrule.specs import Boolean, DType

_MOST_GROUPS: Final = 8
"""The largest number for a wait; programs do not have more groups in flight."""


def _cp_async(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> None:
    """`fe.arch.cp_async(dst, src, count, *, cache="always", pred=None)`."""
    target, source, count, cache, holds = bound(
        low, "dst src count cache= pred=", args, kwargs, node
    )
    require_kernel(low, "cp_async", node)
    shared_pointer(low, "the dst of cp_async", target, node)
    dtype = global_pointer(low, "cp_async", source, node)
    if target.type.dtype is not dtype:
        low.fail(
            node,
            f"cp_async copies {dtype.name} to {target.type.dtype.name}",
            expected="pointers to one dtype",
        )
    size = _bytes(low, dtype, count, node)
    mode: Any = "always" if cache is None else cache
    if mode not in get_args(ops.CacheMode) or (mode == "global" and size != 16):
        low.fail(
            node,
            f"the cache of cp_async of {size} bytes is {describe(cache)}",
            expected='"always", or, of 16 bytes, "global"',
        )
    low.state.writes += 1
    condition = None
    if holds is not None:
        number = coercion.as_number(low, holds, node, Boolean)
        condition = coercion.convert(low, number, Boolean).value
    number_of = size // dtype.itemsize
    low.builder.async_copy(target.value, source.value, number_of, mode, condition)


def global_pointer(
    low: Lowering, name: str, source: Any, node: ast.AST, what: str = "src"
) -> DType:
    """The dtype behind a pointer into global memory.  A CompileError for anything else."""
    is_global = isinstance(source, PointerView) and not (
        source.type.is_shared or source.type.is_own
    )
    if not is_global:
        of = source.name if isinstance(source, TensorView) else "a"
        low.fail(
            node,
            f"the {what} of {name} is {describe(source)}",
            expected="a pointer into global memory",
            hint=f"{of}.iterator + i",
        )
    dtype: DType = source.type.dtype
    access.require_element(low, dtype, node)
    return dtype


def _bytes(low: Lowering, dtype: DType, count: Any, node: ast.AST) -> int:
    known = coercion.plain(count)
    is_count = isinstance(known, int) and not isinstance(known, bool)
    size = int(known) * dtype.itemsize if is_count else 0
    if size not in COPY_BYTES:
        counts = [n // dtype.itemsize for n in COPY_BYTES if n >= dtype.itemsize]
        low.fail(
            node,
            f"cp_async of {describe(count) if not is_count else known} elements of {dtype.name}",
            expected=f"{' or '.join(map(str, counts))} of them, known at compile time: 4, 8 or "
            "16 bytes",
        )
    return size


def _wait_group(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> None:
    """`fe.arch.cp_async_wait_group(n)`."""
    (count,) = bound(low, "n", args, kwargs, node)
    require_kernel(low, "cp_async_wait_group", node)
    known = group_count(low, "cp_async_wait_group", count, node)
    low.state.writes += 1
    low.builder.control("cp_async_wait_group", known)


def group_count(low: Lowering, name: str, count: Any, node: ast.AST) -> int:
    """The number of groups that a wait does not wait for."""
    known = coercion.plain(count)
    if isinstance(known, bool) or not isinstance(known, int) or not 0 <= known <= _MOST_GROUPS:
        low.fail(
            node,
            f"{name} of {describe(count)}",
            expected=f"an int from 0 to {_MOST_GROUPS}, known at compile time",
        )
    return known


def _registers(kind: ops.ControlKind) -> Intrinsic:
    """`fe.arch.setmaxregister_increase(n)`, `setmaxregister_decrease(n)`."""

    def emit(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> None:
        (count,) = bound(low, "reg_count", args, kwargs, node)
        require_kernel(low, kind, node)
        known = coercion.plain(count)
        is_count = isinstance(known, int) and not isinstance(known, bool)
        if not is_count or known % 8 or not 24 <= known <= 256:
            low.fail(
                node,
                f"{kind} of {describe(count) if not is_count else known} registers",
                expected="a multiple of 8 from 24 to 256, known at compile time",
            )
        low.builder.control(kind, known)

    return emit


def controls(kind: ops.ControlKind) -> Intrinsic:
    """The emitter of a function without arguments."""

    def emit(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> None:
        bound(low, "", args, kwargs, node)
        require_kernel(low, kind, node)
        low.state.writes += 1
        low.builder.control(kind)

    return emit


TABLE: Final[dict[Any, Intrinsic]] = {
    faces.cp_async: _cp_async,
    faces.cp_async_commit_group: controls("cp_async_commit_group"),
    faces.cp_async_wait_group: _wait_group,
    faces.griddepcontrol_wait: controls("griddepcontrol_wait"),
    faces.griddepcontrol_launch_dependents: controls("griddepcontrol_launch_dependents"),
    faces.cluster_arrive: controls("cluster_arrive"),
    faces.cluster_arrive_relaxed: controls("cluster_arrive_relaxed"),
    faces.cluster_wait: controls("cluster_wait"),
    faces.setmaxregister_increase: _registers("setmaxregister_increase"),
    faces.setmaxregister_decrease: _registers("setmaxregister_decrease"),
}
"""The emitters of these functions."""
