"""Kernels of NVIDIA Warp: `fe.frontends.warp.compile(kernel, dim=…)`.

Warp compiles the kernel, for the CPU or for GPUs; the function launches it without Warp.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.frontends.examples import parted
from ferrule.frontends.given import architectures, brief, check_on_cpu, names, requiring
from ferrule.frontends.kernels import build_kernel
from ferrule.frontends.launchsizes import checked_sizes, constants_of, constants_said
from ferrule.frontends.packages import load
from ferrule.frontends.reading import is_unread
from ferrule.frontends.strides import Asked
from ferrule.frontends.told import plain
from ferrule.specs import Condition, Dim, Param, Requirement, Signature
from ferrule.specs.params import Tensor

if TYPE_CHECKING:
    from ferrule.compiler.conventions import CallingConvention
    from ferrule.compiler.options import Options
    from ferrule.frontends.warp.covering import Covering
    from ferrule.frontends.warp.types import Types
    from ferrule.runtime import Function

__all__ = ["compile"]

Extent: TypeAlias = "Dim | str"
"""A size, or the name of an array for all of its sizes."""
Extents: TypeAlias = "Extent | Sequence[Extent]"


def compile(
    kernel: Any,
    *,
    dim: Extents | Callable[[Signature], Extents],
    specs: Mapping[str, Any] | None = None,
    target: str | Sequence[str] = "cpu",
    tiled: bool = False,
    block_dim: int | None = None,
    max_blocks: int | None = None,
    cpu_flags: str | None = "",
    smaller: Sequence[str] = (),
    results: Sequence[str] = (),
    zero: bool | str | Sequence[str] = (),
    name: str | None = None,
    doc: str | None = None,
    requires: Sequence[Condition | Requirement] = (),
    options: str | Options | None = None,
) -> Function:
    """The function that launches a kernel of Warp, `wp.launch(kernel, dim, …)`, without Warp; or,
    if it is `tiled`, `wp.launch_tiled(kernel, dim, block_dim=…)`.

    Its parameters are the kernel's: arrays of any sizes and strides, arrays of vectors and matrices
    are tensors with further dims after the array's; numbers; vectors, matrices, quaternions and
    structs as tuples.  `specs` narrows them, by name, with specs or examples: sizes that are equal,
    strides, alignment.  The arrays named by `results` are allocated and returned; their sizes must
    be known from the others.  `zero` names those that are filled with zeros before the call, True
    means all: the others are uninitialised.

    `dim` is the size of the launch: sizes, the name of an array, which stands for all of its sizes,
    or a function that computes these from the signature.  If sizes differ between calls, it must
    depend on them or be marked by `fixed`; a size of a real array that equals a number in `dim` is
    constant.  An array must be large enough for the kernel's indices: axes that are indexed by
    `wp.tid()` must be as large as the launch along these axes, and axes that are indexed by numbers
    must be larger than these; otherwise the call raises ValueError.  An array that the kernel
    indexes in another way must be as large as the launch, if it has as many dims and `specs` does
    not describe it.  `smaller` names arrays that are not checked; an array in a struct is named by
    its path, "options.weights".

    `target` is "cpu", or an architecture such as "sm_90", or several.  `block_dim` and `max_blocks`
    are those of a launch on a GPU, by default 256 and no limit.  With `tiled` each element of `dim`
    is a block of `block_dim` threads, which must be given; on the CPU a block is one thread.
    `cpu_flags` are Warp's `cpu_compiler_flags`: none by default, so that the code runs on any CPU
    of the architecture; None selects Warp's own flags, which are for this machine's CPU.
    `requires` and `options` as for `fe.compile` and `compiler.build`.

    Raises ImportError if Warp is not installed, TypeError for an object that is not a kernel of
    Warp, CompileError for kernels that cannot be called this way and for arguments that do not fit
    them.
    """
    warp = load("warp", "warp")
    _check_kernel(warp, kernel)
    from ferrule.compiler.conventions import Sequence as Sequential
    from ferrule.frontends.warp.calling import cpu_call, cuda_call
    from ferrule.frontends.warp.types import Types

    types = Types(warp)
    _check_launch(tiled, block_dim, max_blocks, cpu_flags)
    if not isinstance(specs, Mapping | None):
        raise TypeError(f"specs must be a dict, such as {{'x': spec}}, but got {specs!r}")
    params, made, signature = _call(types, kernel, specs, name, results, constants_of(dim))
    constants = constants_said(signature, dim)
    if constants:
        params, made, signature = _call(types, kernel, specs, name, results, constants)
    rows = [(each.label, each.type) for each in kernel.adj.args]
    arrays = _arrays(types, params, rows)
    asked = Asked.of(signature)
    dims = _dims(arrays, dim(asked.signature) if callable(dim) else dim)
    threads = 1 if target == "cpu" else 256 if block_dim is None else block_dim
    dims = _tiled(dims, threads) if tiled else dims
    packed = [types.packed(spec, kind) for spec, (_, kind) in zip(params, rows, strict=True)]
    if target == "cpu":
        check_on_cpu(params, signature.name)
        convention: CallingConvention = cpu_call(warp, kernel, dims, packed, cpu_flags)
    else:
        archs = architectures("target", target, "'cpu', or ")
        convention = cuda_call(warp, kernel, dims, packed, archs, threads, max_blocks)
    # A value that is not a size has raised its own error before.
    checked_sizes("dim", dim, signature)
    covered = _covered(kernel, arrays, dims, {*(specs or {})}, _smaller(arrays, smaller))
    remarks: tuple[str, ...] = () if tiled or target == "cpu" else _on_tiles(kernel, dims, threads)
    convention = asked.held(Sequential([replace(covered, remarks=remarks), convention]))
    return build_kernel(
        kernel.func,
        requiring(signature, requires),
        convention,
        results=made,
        zero=zero,
        doc=doc,
        options=options,
    )


def _call(
    types: Types,
    kernel: Any,
    specs: Mapping[str, Any] | None,
    name: str | None,
    results: Sequence[str],
    constants: Sequence[int],
) -> tuple[list[Param], list[Tensor], Signature]:
    """All parameters of the kernel, the tensors among them that `results` names, and the signature
    of the others."""
    params = _params(types, kernel, dict(specs or {}), constants)
    given, made = parted(params, results)
    return params, made, Signature(kernel.func.__name__ if name is None else name, given)


def _arrays(
    types: Types, params: Sequence[Param], rows: Sequence[tuple[str, Any]]
) -> dict[str, tuple[Tensor, int]]:
    """All arrays by their paths, "options.weights" in a struct, each with its number of dims
    without those of its elements."""
    return {
        path: (array, rank)
        for param, (label, kind) in zip(params, rows, strict=True)
        for path, array, rank in types.arrays(label, param, kind)
    }


def _smaller(arrays: Collection[str], given: Sequence[str]) -> list[str]:
    """The arrays that may be smaller than the launch."""
    found = names(given, "smaller")
    for each in found:
        _check_array("smaller", each, arrays)
    return list(found)


def _check_array(what: str, path: str, arrays: Collection[str]) -> None:
    if path not in arrays:
        listed = ", ".join(arrays) or "there is none"
        raise CompileError(Diagnostic(f"{what} names {path!r}", expected=f"an array: {listed}"))


def _covered(
    kernel: Any,
    arrays: Mapping[str, tuple[Tensor, int]],
    dims: Sequence[Dim],
    described: Collection[str],
    smaller: Collection[str],
) -> Covering:
    """The check that arrays are large enough for the kernel's indices, except those in `smaller`
    and fields of structs that it does not read.

    An array with other indices than those of the launch and numbers must be as large as the launch,
    if it has as many dims and `specs` does not describe it.
    """
    from ferrule.frontends.warp.covering import Covering, Need, needed
    from ferrule.frontends.warp.indexing import indices_of, numbers_of

    tree, numbers = kernel.adj.tree, numbers_of(kernel.func)
    launched = dims[: kernel.adj.kernel_dim]
    needs: list[Need] = []
    unknown: list[str] = []
    for path, (array, rank) in arrays.items():
        if path in smaller or ("." in path and is_unread(tree, path)):
            continue
        found = indices_of(tree, path, rank, numbers)
        pairs = {(axis, of) for axis, of in found.launched if of < len(launched)}
        if rank == len(launched) and not {path, path.partition(".")[0]} & {*described}:
            pairs |= {(axis, axis) for axis in found.unknown}
        needs += [
            Need(path, array, axis, launched[of], f"size {of} of the launch")
            for axis, of in sorted(pairs)
        ]
        needs += [
            Need(path, array, axis, least, f"for the index {least - 1} in the kernel")
            for axis, least in found.least.items()
        ]
        unknown += [path] if found.unknown else []
    return Covering(needed(needs), tuple(launched), tuple(unknown))


def _tiled(dims: tuple[Dim, ...], threads: int) -> tuple[Dim, ...]:
    """The sizes of a launch with a block of threads for each element of `dims`."""
    from ferrule.frontends.warp.types import MAX_DIMS

    if len(dims) == MAX_DIMS:
        raise CompileError(f"dim takes 1 to {MAX_DIMS - 1} sizes if tiled, but got {len(dims)}")
    return (*dims, threads)


def _on_tiles(kernel: Any, dims: Sequence[Dim], threads: int) -> tuple[str, ...]:
    """The remark on a kernel that works on tiles, if the last size of its launch does not make each
    block one tile."""
    from ferrule.frontends.warp.indexing import uses_tiles

    is_split = isinstance(dims[-1], int) and dims[-1] % threads == 0
    if is_split or not uses_tiles(kernel.adj.tree):
        return ()
    return (
        f"{kernel.key} works on tiles, which a block of {threads} threads shares, but the last "
        f"size of dim is no multiple of that: tiled=True makes a block for each element of dim",
    )


def _check_launch(tiled: Any, block_dim: Any, max_blocks: Any, cpu_flags: Any) -> None:
    """Raises TypeError or ValueError for an invalid option of a launch."""
    if not isinstance(tiled, bool):
        raise TypeError(f"tiled must be True or False, but got {tiled!r}")
    if tiled and block_dim is None:
        raise ValueError("tiled=True wants the threads of a block, as in block_dim=64")
    if block_dim is not None:
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


def _params(
    types: Types, kernel: Any, given: dict[str, Any], constants: Sequence[int]
) -> list[Param]:
    found = []
    kinds = {each.label: each.type for each in kernel.adj.args}
    sizes = types.sizes(kinds, given, constants)
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


def _dims(arrays: Mapping[str, tuple[Tensor, int]], dim: Extents) -> tuple[Dim, ...]:
    """The sizes of a launch."""
    extents: list[Any] = list(dim) if isinstance(dim, (tuple, list)) else [dim]
    found: list[Dim] = []
    for extent in extents:
        if isinstance(extent, str):
            _check_array("dim", extent, arrays)
            array, rank = arrays[extent]
            found += array.shape[:rank]
        else:
            found.append(plain(extent))
    return tuple(found)
