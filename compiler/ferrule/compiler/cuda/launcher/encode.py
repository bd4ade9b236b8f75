"""The cold function that encodes a tensor map, and its calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from llvmlite import ir

from ferrule.compiler.cuda.launcher.cold import HINT_SLOT, end, entry, failed, put, unless
from ferrule.compiler.cuda.launcher.driver import LIBRARY
from ferrule.compiler.cuda.launcher.entries import ENCODE, PROTOTYPES
from ferrule.compiler.cuda.launcher.libcuda import RTLD_NOW, driver_version
from ferrule.compiler.cuda.launcher.state import Status
from ferrule.compiler.cuda.launcher.tensor_maps import (
    ALIGN,
    BYTES,
    FUNCTION,
    FUNCTION_TYPE,
    IM2COL,
    IM2COL_TYPE,
    TILING,
    Encoded,
    tiling_constant,
)
from ferrule.compiler.cuda.tilings import MAX_SIZE, STRIDE_LIMIT, Columns, Tiling
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.launches import store_array
from ferrule.runtime.llvm.layouts import I8, I32, I64, PTR

_SLOT: Final = "cuda.encode"
_MODES: Final = ("interleave", "swizzle", "l2_promotion", "oob_fill")


# ---- calls ----


def tensor_map(emitter: Emitter) -> ir.Value:
    """A place for a map on the stack, with the driver's alignment."""
    place = emitter.alloca(ir.ArrayType(I8, BYTES), name="tensor_map")
    place.align = ALIGN
    return place


def encode(
    emitter: Emitter,
    state: ir.Value,
    tiling: Tiling | Columns,
    place: ir.Value,
    address: ir.Value,
    sizes: Sequence[ir.Value],
    strides: Sequence[ir.Value],
    values: ir.Value,
) -> ir.Value:
    """Encode a map after `Launcher.enter`; returns an `Encoded`, see there."""
    if (len(sizes), len(strides)) != (tiling.rank, tiling.rank - 1):
        raise ValueError(
            f"a map of {tiling.rank} dims has as many sizes and one stride less, but got "
            f"{len(sizes)} and {len(strides)}"
        )
    name = emitter.module.get_unique_name("cuda.tiling")
    constant = emitter.global_constant(name, tiling_constant(tiling))
    constant.align = TILING.align
    arrays = [store_array(emitter, I64, each, "dims") for each in (sizes, strides)]
    function = emitter.symbol(ENCODE, PROTOTYPES[ENCODE])
    slot = _slot(emitter, _SLOT if tiling.corners is None else f"{_SLOT}_im2col")
    given = [state, slot, constant, place, address, *arrays, values]
    return emitter.call(function, given, "encoded")


def _slot(emitter: Emitter, name: str) -> ir.Value:
    """The variable of the object that caches the address of a function of the driver, null at
    start."""
    known = emitter.module.globals.get(name)
    if known is None:
        known = ir.GlobalVariable(emitter.module, PTR, name)
        known.linkage = "internal"
        known.initializer = ir.Constant(PTR, None)
        known.type = PTR
    return known


# ---- support code ----


def define_encoding(emitter: Emitter) -> None:
    """`ENCODE`: the map of a tensor without elements is all zeros, and no copy may use it."""
    with entry(emitter, ENCODE) as arguments:
        state, slot, tiling, place, address, sizes, strides, values = arguments
        none = emitter.const_i32(0)
        im2col = emitter.icmp("ne", emitter.load_field(tiling, TILING, "im2col"), none)
        name = emitter.select(im2col, emitter.cstring(IM2COL), emitter.cstring(FUNCTION))
        function = _found(emitter, slot, name, values)
        rank = emitter.load_field(tiling, TILING, "rank", name="rank")
        count = emitter.builder.zext(rank, I64)
        _check_sizes(emitter, count, sizes, place, values)
        alignment = emitter.load_field(tiling, TILING, "alignment")
        odd = _is_odd(emitter, emitter.builder.ptrtoint(address, I64), alignment)
        with emitter.if_then(odd, likely=False):
            end(emitter, _as_status(Encoded.MISPLACED), values, address)
        _check_strides(emitter, count, sizes, strides, alignment, values)
        _check_row(emitter, tiling, sizes, values)
        given = [place, emitter.load_field(tiling, TILING, "dtype"), rank, address, sizes, strides]
        result = _encoded(emitter, function, im2col, tiling, given)
        with unless(emitter, result):
            failed(emitter, state, result, name, values)
            _show(emitter, count, address, sizes, strides, values)
            emitter.ret(emitter.const_i32(Encoded.CALL_FAILED))
        emitter.ret(emitter.const_i32(Encoded.DONE))


def _encoded(
    emitter: Emitter,
    function: ir.Value,
    im2col: ir.Value,
    tiling: ir.Value,
    given: Sequence[ir.Value],
) -> ir.Value:
    """The result of the driver's function, whose arguments begin alike."""
    modes = [emitter.load_field(tiling, TILING, name) for name in _MODES]
    box, steps, lower, upper = (
        emitter.field_ptr(tiling, TILING, name) for name in ("box", "steps", "lower", "upper")
    )
    result = emitter.alloca(I32, name="result")
    tiled, columns, done = (emitter.block(f"cuda.{name}") for name in ("tiled", "columns", "done"))
    emitter.cond_branch(im2col, columns, tiled)
    emitter.at(tiled)
    arguments = [*given, box, steps, *modes]
    emitter.store(emitter.call_pointer(function, FUNCTION_TYPE, arguments), result)
    emitter.branch(done)
    emitter.at(columns)
    sizes = [emitter.load(emitter.index(box, I32, number), I32) for number in range(2)]
    arguments = [*given, lower, upper, *sizes, steps, *modes]
    emitter.store(emitter.call_pointer(function, IM2COL_TYPE, arguments), result)
    emitter.branch(done)
    emitter.at(done)
    return emitter.load(result, I32)


def _check_row(emitter: Emitter, tiling: ir.Value, sizes: ir.Value, values: ir.Value) -> None:
    size = emitter.load(sizes, I64, name="row")
    odd = _is_odd(emitter, size, emitter.load_field(tiling, TILING, "row"))
    with emitter.if_then(odd, likely=False):
        end(emitter, _as_status(Encoded.ODD_ROW), values, size)


def _as_status(encoded: Encoded) -> Status:
    """The status with the same number, for `end`."""
    return Status(int(encoded))


def _found(emitter: Emitter, slot: ir.Value, name: ir.Value, values: ir.Value) -> ir.Value:
    """The driver's function; ends the function if there is none."""
    place = emitter.alloca(PTR, name="function")
    emitter.store(emitter.builder.load_atomic(slot, "monotonic", 8, typ=PTR), place)
    with emitter.if_then(emitter.is_null(emitter.load(place, PTR)), likely=False):
        path, now = emitter.cstring(LIBRARY), emitter.const_i32(RTLD_NOW)
        library = emitter.call("dlopen", [path, now], "library")
        found = emitter.call("dlsym", [library, name])
        with emitter.if_then(emitter.is_null(found), likely=False):
            end(
                emitter,
                _as_status(Encoded.NO_FUNCTION),
                values,
                name,
                *driver_version(emitter, library),
            )
        # Without an order: every thread finds the same address.
        emitter.builder.cmpxchg(slot, emitter.null(), found, "monotonic", "monotonic")
        emitter.store(found, place)
    return emitter.load(place, PTR)


def _check_sizes(
    emitter: Emitter, count: ir.Value, sizes: ir.Value, place: ir.Value, values: ir.Value
) -> None:
    with emitter.loop(count, name="dim") as dim:
        size = emitter.load(emitter.index(sizes, I64, dim), I64, name="size")
        with emitter.if_then(emitter.icmp("eq", size, emitter.const_i64(0)), likely=False):
            rest = [emitter.const_i32(0), emitter.const_i64(BYTES)]
            emitter.call("memset", [place, *rest])
            emitter.ret(emitter.const_i32(Encoded.DONE))
        too_large = emitter.icmp("ugt", size, emitter.const_i64(MAX_SIZE))
        with emitter.if_then(too_large, likely=False):
            end(emitter, _as_status(Encoded.ODD_SIZE), values, size, dim)


def _check_strides(
    emitter: Emitter,
    count: ir.Value,
    sizes: ir.Value,
    strides: ir.Value,
    alignment: ir.Value,
    values: ir.Value,
) -> None:
    """A stride of a dim of size 1 has no meaning, and PyTorch may give any: where it is none for a
    map, that of the dim before takes its place."""
    one = emitter.const_i64(1)
    usual = emitter.alloca(I64, name="usual")
    emitter.store(alignment, usual)
    with emitter.loop(emitter.binary("sub", count, one), name="outer") as outer:
        place = emitter.index(strides, I64, outer)
        stride = emitter.load(place, I64, name="stride")
        beyond = emitter.icmp("uge", stride, emitter.const_i64(STRIDE_LIMIT))
        odd = emitter.binary("or", _is_odd(emitter, stride, alignment), beyond)
        with emitter.if_then(odd, likely=False):
            dim = emitter.binary("add", outer, one)
            size = emitter.load(emitter.index(sizes, I64, dim), I64)
            with emitter.if_then(emitter.icmp("ne", size, one), likely=False):
                end(emitter, _as_status(Encoded.ODD_STRIDE), values, stride, dim)
            emitter.store(emitter.load(usual, I64), place)
        emitter.store(emitter.load(place, I64), usual)


def _is_odd(emitter: Emitter, number: ir.Value, alignment: ir.Value) -> ir.Value:
    """Whether a number is not a multiple of a power of two."""
    mask = emitter.binary("sub", alignment, emitter.const_i64(1))
    return emitter.icmp("ne", emitter.binary("and", number, mask), emitter.const_i64(0))


def _show(
    emitter: Emitter,
    count: ir.Value,
    address: ir.Value,
    sizes: ir.Value,
    strides: ir.Value,
    values: ir.Value,
) -> None:
    """Extend the values that `failed` stored: the address, the sizes, the strides, then the
    hint."""
    hint = emitter.load(emitter.index(values, I64, HINT_SLOT), I64)
    put(emitter, values, HINT_SLOT, address)
    first = emitter.index(values, I64, HINT_SLOT + 1)
    with emitter.loop(count, name="shown") as dim:
        size = emitter.load(emitter.index(sizes, I64, dim), I64)
        emitter.store(size, emitter.index(first, I64, dim))
    second = emitter.index(first, I64, count)
    outer = emitter.binary("sub", count, emitter.const_i64(1))
    with emitter.loop(outer, name="step") as dim:
        stride = emitter.load(emitter.index(strides, I64, dim), I64)
        emitter.store(stride, emitter.index(second, I64, dim))
    emitter.store(hint, emitter.index(second, I64, outer))
