"""Small kernels around single PTX instructions, executed by the emulated GPU."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ferrule.emulator.machine import Machine
from ferrule.emulator.machine.kernels import Kernel

Array = npt.NDArray[Any]
BITS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
HEADER = ".version 8.8\n.target sm_90a\n.address_size 64\n"


def machine(checks: str = "memory", schedule: str | None = None, arch: str = "sm_90a") -> Machine:
    """An emulated GPU."""
    return Machine(arch, checks=frozenset(filter(None, checks.split(","))), schedule=schedule)


def kernel(body: str, parameters: str = "", registers: str = "", before: str = "") -> str:
    """PTX of one kernel `k`, with plenty of registers."""
    return (
        f"{HEADER}{before}\n.visible .entry k({parameters})\n{{\n"
        ".reg .pred %p<20>;\n.reg .b16 %h<20>;\n.reg .b32 %r<40>;\n.reg .b64 %rd<40>;\n"
        ".reg .f32 %f<20>;\n.reg .f64 %fd<20>;\n"
        f"{registers}\n{body}\n}}\n"
    )


def launch(
    ptx: str,
    arrays: Sequence[Array],
    *scalars: int,
    grid: tuple[int, int, int] = (1, 1, 1),
    block: tuple[int, int, int] = (32, 1, 1),
    smem: int = 0,
    cluster: tuple[int, int, int] = (1, 1, 1),
    on: Machine | None = None,
    name: str = "k",
) -> list[Array]:
    """Launch a kernel with arrays by their addresses, then u32 scalars; what the arrays hold then.

    The rest of what parameters have, such as sizes behind an address, is 0.
    """
    gpu = on or machine()
    module = gpu.load(ptx)
    places = [gpu.memory.allocate(each.nbytes) for each in arrays]
    for place, each in zip(places, arrays, strict=True):
        ctypes.memmove(place, np.ascontiguousarray(each).ctypes.data, each.nbytes)
    try:
        chosen = module.kernels[name]
        data = parameter_bytes(chosen, places, scalars)
        chosen.launch(grid, block, smem=smem, cluster=cluster, parameters=data)
        found = [np.empty_like(each) for each in arrays]
        for place, each in zip(places, found, strict=True):
            ctypes.memmove(each.ctypes.data, place, each.nbytes)
        return found
    finally:
        module.unload()
        for place in places:
            gpu.memory.free(place)


def parameter_bytes(kernel: Kernel, addresses: Sequence[int], scalars: Sequence[int]) -> bytes:
    """The bytes of a kernel's parameters: addresses, each at its place, and words behind them."""
    data = bytearray(max((each.offset + each.size for each in kernel.parameters), default=0))
    end = 0
    for address, place in zip(addresses, kernel.parameters, strict=False):
        end = place.offset + 8
        data[place.offset : end] = struct.pack("<Q", address)
    words = struct.pack(f"<{len(scalars)}I", *scalars)
    data[end : end + len(words)] = words
    return bytes(data)


def pointers(count: int) -> str:
    """Parameters that are addresses: a0, a1, ..."""
    return ", ".join(f".param .u64 a{i}" for i in range(count))


LOAD_INDEX = "mov.u32 %r0, %tid.x;\n"


def apply(
    name: str,
    operands: Sequence[Array],
    result: npt.DTypeLike,
    more: str = "",
    on: Machine | None = None,
) -> Array:
    """One instruction on operands of each lane: `apply("add.s32", [a, b], np.int32)`.

    Predicates are arrays of bool, as operands and as the result. `more` are further operands, as
    text. Any length: the arrays are padded to whole warps.
    """
    count = len(operands[0])
    padded = -(-count // 32) * 32
    given = [np.resize(each, padded) for each in operands]
    out = np.zeros(padded, result)
    lines = ["mov.u32 %r0, %ctaid.x;", "shl.b32 %r0, %r0, 5;", "mov.u32 %r1, %tid.x;"]
    lines.append("add.u32 %r0, %r0, %r1;")
    declared, names = [], []
    for i, each in enumerate((*given, out)):
        declared += _operand(i, each.dtype)
        names.append(f"%v{i}")
        if i < len(given):
            lines += _loaded(i, each.dtype)
    last = len(given)
    text = ", ".join([names[-1], *names[:-1], *filter(None, [more])])
    lines.append(f"{name} {text};")
    lines += _stored(last, out.dtype)
    ptx = kernel("\n".join([*lines, "ret;"]), pointers(last + 1), "\n".join(declared))
    arrays = [each.view(np.uint8) if each.dtype == bool else each for each in (*given, out)]
    found = launch(ptx, arrays, grid=(padded // 32, 1, 1), on=on)[-1]
    return found.view(out.dtype)[:count]


def _operand(i: int, dtype: np.dtype[Any]) -> list[str]:
    kind = ".pred" if dtype.kind == "b" else f".b{max(16, 8 * dtype.itemsize)}"
    return [f".reg {kind} %v{i};", f".reg .b64 %q{i};", f".reg .b32 %b{i};"]


def _place(i: int, size: int) -> list[str]:
    return [
        f"ld.param.u64 %q{i}, [a{i}];",
        f"mul.wide.u32 %rd0, %r0, {size};",
        f"add.u64 %q{i}, %q{i}, %rd0;",
    ]


def _loaded(i: int, dtype: np.dtype[Any]) -> list[str]:
    lines = _place(i, dtype.itemsize)
    if dtype.kind == "b":
        return [*lines, f"ld.global.u8 %b{i}, [%q{i}];", f"setp.ne.u32 %v{i}, %b{i}, 0;"]
    sign = "s" if dtype.kind == "i" else "u"
    return [*lines, f"ld.global.{sign}{8 * dtype.itemsize} %v{i}, [%q{i}];"]


def _stored(i: int, dtype: np.dtype[Any]) -> list[str]:
    lines = _place(i, dtype.itemsize)
    if dtype.kind == "b":
        return [*lines, f"selp.u32 %b{i}, 1, 0, %v{i};", f"st.global.u8 [%q{i}], %b{i};"]
    return [*lines, f"st.global.b{8 * dtype.itemsize} [%q{i}], %v{i};"]


def integers(dtype: npt.DTypeLike, count: int = 256, seed: int = 0) -> Array:
    """Edges of an integer type, then random ones."""
    info = np.iinfo(np.dtype(dtype))
    edges = {info.min, info.min + 1, info.max, info.max - 1, 0, 1, 2, 3, 7, 31, 32, 33, 63, 64, 65}
    edges |= {info.max // 2, info.max // 2 + 1, 255, 256 % (info.max + 1)}
    if info.min:
        edges |= {-1, -2, -31, -32}
    known = [each for each in sorted(edges) if info.min <= each <= info.max]
    rng = np.random.default_rng(seed)
    drawn = rng.integers(info.min, info.max, count, dtype=dtype, endpoint=True)
    small = rng.integers(0, 70, count).astype(dtype)
    mixed = np.where(rng.random(count) < 0.3, small, drawn)
    return rng.permutation(np.concatenate([np.array(known, dtype), mixed]))[:count].astype(dtype)


def every_pair(a: Array, b: Array) -> tuple[Array, Array]:
    """All pairs of elements of two arrays."""
    return np.repeat(a, len(b)), np.tile(b, len(a))


def floats(dtype: npt.DTypeLike, count: int = 512, seed: int = 0) -> Array:
    """Special floats, then ones with random bits and ones of ordinary size."""
    dtype = np.dtype(dtype)
    info = np.finfo(dtype)
    special = np.array(
        [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 3.0, np.inf, -np.inf, np.nan, info.max,
         info.min, info.tiny, -info.tiny, info.smallest_subnormal, info.eps, 1 + info.eps],
        dtype,
    )  # fmt: skip
    rng = np.random.default_rng(seed)
    words = BITS[dtype.itemsize]
    bits = rng.integers(0, np.iinfo(words).max, count, dtype=words, endpoint=True).view(dtype)
    plain = (rng.standard_normal(count) * 10.0 ** rng.integers(-3, 4, count)).astype(dtype)
    mixed = np.where(rng.random(count) < 0.5, bits, plain)
    return rng.permutation(np.concatenate([special, mixed]))[:count]


def same_floats(found: Array, wanted: Array) -> bool:
    """The same bits, where NaNs are equal."""
    words = BITS[found.dtype.itemsize]
    nan = np.isnan(found) & np.isnan(wanted)
    return bool(np.all(nan | (found.view(words) == wanted.view(words))))
