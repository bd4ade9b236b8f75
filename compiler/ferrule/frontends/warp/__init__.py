"""Kernels of NVIDIA Warp: `fe.frontends.warp.compile(kernel, dim=…)`.

Warp compiles the kernel, for the CPU or for GPUs; what comes out launches it without Warp.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.frontends.examples import parted, tensor_named
from ferrule.frontends.given import architectures, brief, check_on_cpu, location_of, names
from ferrule.frontends.launchsizes import checked_sizes
from ferrule.frontends.packages import load
from ferrule.frontends.reading import FILL, indexed_by_numbers, remarks_on, unfilled
from ferrule.frontends.told import plain
from ferrule.specs import Dim, Param, Signature
from ferrule.specs.params import Tensor

if TYPE_CHECKING:
    from ferrule.compiler.conventions import CallingConvention
    from ferrule.compiler.options import Options
    from ferrule.frontends.warp.covering import Covering
    from ferrule.frontends.warp.types import Types
    from ferrule.runtime import Function

__all__ = ["compile"]

Extent: TypeAlias = "Dim | str"
"""A size, or the name of an array for all of its own."""
Extents: TypeAlias = "Extent | Sequence[Extent]"


def compile(
    kernel: Any,
    *,
    dim: Extents | Callable[[Signature], Extents],
    specs: Mapping[str, Any] | None = None,
    target: str | Sequence[str] = "cpu",
    block_dim: int = 256,
    max_blocks: int | None = None,
    cpu_flags: str | None = "",
    smaller: Sequence[str] = (),
    results: Sequence[str] = (),
    zero: bool | str | Sequence[str] = (),
    name: str | None = None,
    doc: str | None = None,
    options: str | Options | None = None,
) -> Function:
    """The function that launches a kernel of Warp, `wp.launch(kernel, dim, …)`, without Warp.

    Its parameters are the kernel's: arrays of any sizes and strides, those of vectors and matrices
    as tensors with dims of their own behind the array's; numbers; vectors, matrices, quaternions
    and structs as tuples.  `specs` narrows them, by name, with specs or examples: sizes that are
    equal, strides, alignment.  The arrays named by `results` are allocated and returned; their
    sizes must be known from the others.  `zero` names those that are filled with zeros before the
    call, True for all: in the others is whatever was in the memory before.

    `dim` is what is launched: sizes, the name of an array, which stands for all of its, or a
    function that gets the signature and says this; where a call may bring other sizes it follows
    from them, or is `fixed`.  An array with as many dims as the kernel has indices that `specs`
    does not name must be at least as large as `dim`, else the call is a ValueError, but for those
    that `smaller` names and those that the kernel indexes with numbers alone.  `target` is "cpu",
    or an architecture such as "sm_90", or several.  `block_dim` and `max_blocks` are those of a
    launch on a GPU.  `cpu_flags` are Warp's `cpu_compiler_flags`: none by default, so that the code
    runs on any CPU of the kind; None takes Warp's own, for this very CPU.  `options` are those of
    `compiler.build`.

    Raises ImportError without Warp, TypeError for what is no kernel of Warp, CompileError for
    kernels that cannot be called so and for what does not fit them.
    """
    warp = load("warp", "warp")
    _check_kernel(warp, kernel)
    from ferrule.compiler.conventions import Sequence as Sequential
    from ferrule.frontends.warp.calling import cpu_call, cuda_call
    from ferrule.frontends.warp.types import Types

    types = Types(warp)
    _check_launch(block_dim, max_blocks, cpu_flags)
    if not isinstance(specs, Mapping | None):
        raise TypeError(f"specs must be a dict, such as {{'x': spec}}, but got {specs!r}")
    params = _params(types, kernel, dict(specs or {}))
    given, made = parted(params, results)
    signature = Signature(kernel.func.__name__ if name is None else name, given)
    dims = _dims(types, kernel, params, dim(signature) if callable(dim) else dim)
    rows = [(each.label, each.type) for each in kernel.adj.args]
    packed = [types.packed(spec, kind) for spec, (_, kind) in zip(params, rows, strict=True)]
    if target == "cpu":
        check_on_cpu(params, signature.name)
        convention: CallingConvention = cpu_call(warp, kernel, dims, packed, cpu_flags)
    else:
        archs = architectures("target", target, "'cpu', or ")
        convention = cuda_call(warp, kernel, dims, packed, archs, block_dim, max_blocks)
    # What is no size at all has had its own error before.
    checked_sizes("dim", dim, signature)
    covered = _covered(kernel, params, dims, {*(specs or {}), *_smaller(params, smaller)})
    convention = Sequential([covered, convention]) if covered.arrays else convention
    from ferrule.compiler.building import build

    said = kernel.func.__doc__ if doc is None else doc
    at = location_of(kernel.func)
    notes = remarks_on(signature.name, kernel.func, unfilled(made, zero), FILL)
    return build(
        signature,
        convention,
        results=made,
        zero=zero,
        doc=said,
        location=at,
        options=options,
        notes=notes,
    )


def _smaller(params: Sequence[Param], given: Sequence[str]) -> tuple[str, ...]:
    """The arrays that may be smaller than what is launched."""
    return tuple(tensor_named(params, each, "smaller").name for each in names(given, "smaller"))


def _covered(
    kernel: Any, params: Sequence[Param], dims: Sequence[Dim], said: Collection[str]
) -> Covering:
    """The check of the arrays that have as many dims as a kernel has indices, but for `said`."""
    from ferrule.frontends.warp.covering import Covering

    rank, tree = kernel.adj.kernel_dim, kernel.adj.tree
    arrays = [
        param
        for param, argument in zip(params, kernel.adj.args, strict=True)
        if isinstance(param, Tensor) and argument.type.ndim == rank and param.name not in said
    ]
    checked = (each for each in arrays if not indexed_by_numbers(tree, each.name))
    return Covering(tuple(checked), tuple(dims[:rank]))


def _check_launch(block_dim: Any, max_blocks: Any, cpu_flags: Any) -> None:
    """TypeError or ValueError for what is no option of a launch."""
    _check_count("block_dim", block_dim, 1024)
    if max_blocks is not None:
        _check_count("max_blocks", max_blocks)
    if not isinstance(cpu_flags, str | None):
        raise TypeError(f"cpu_flags must be a text, such as '-mavx2', or None, not {cpu_flags!r}")


def _check_count(what: str, given: Any, most: int | None = None) -> None:
    if not isinstance(given, int) or isinstance(given, bool):
        raise TypeError(f"{what} must be an int, but got {given!r}")
    if given < 1 or (most is not None and given > most):
        wanted = "at least 1" if most is None else f"in [1, {most}]"
        raise ValueError(f"{what} must be {wanted}, but got {given}")


def _check_kernel(warp: Any, kernel: Any) -> None:
    if not isinstance(kernel, warp.Kernel):
        raise TypeError(
            f"fe.frontends.warp.compile: expected a kernel of Warp, a function with @wp.kernel, "
            f"but got {brief(kernel)}"
        )
    if kernel.is_generic:
        raise CompileError(
            Diagnostic(
                f"the kernel {kernel.key} is generic: it has no types of its own",
                hint="compile an overload of it, kernel = wp.overload(kernel, [types])",
            )
        )


def _params(types: Types, kernel: Any, given: dict[str, Any]) -> list[Param]:
    found = []
    sizes = types.sizes({each.label: each.type for each in kernel.adj.args}, given)
    for argument in kernel.adj.args:
        label, kind = argument.label, argument.type
        if label in given:
            found.append(types.narrowed(label, kind, given.pop(label), sizes))
        else:
            found.append(types.spec(label, kind))
    if given:
        known = ", ".join(argument.label for argument in kernel.adj.args)
        raise CompileError(
            Diagnostic(
                f"specs names {', '.join(given)}, which {kernel.key} does not have",
                expected=known,
            )
        )
    return found


def _dims(types: Types, kernel: Any, params: Sequence[Param], dim: Extents) -> tuple[Dim, ...]:
    """The sizes of a launch."""
    kinds = {argument.label: argument.type for argument in kernel.adj.args}
    arrays = {param.name: param for param in params if isinstance(param, Tensor)}
    extents: list[Any] = list(dim) if isinstance(dim, (tuple, list)) else [dim]
    found: list[Dim] = []
    for extent in extents:
        if not isinstance(extent, str):
            found.append(plain(extent))
        elif extent in arrays:
            found += arrays[extent].shape[: kinds[extent].ndim]
        else:
            raise CompileError(
                Diagnostic(f"dim names {extent!r}", expected=f"an array: {', '.join(arrays)}")
            )
    return tuple(found)
