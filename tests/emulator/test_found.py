"""What random programs have found: guards that are constants, shifts by 2**32 and more."""

from __future__ import annotations

import ctypes
import struct
from typing import Any

import numpy as np
import pytest
from device_kernels import kernel as operator_kernel
from device_kernels import lowered_for, program, text_of
from ptx_programs import kernel, launch, machine

from ferrule import specs
from ferrule.language.ir import ops

CONSTANT_GUARD = """
ld.param.u64 %rd1, [a0];
mov.u32 %r1, %tid.x;
mov.pred %p1, {value};
@%p1 st.global.u32 [%rd1], 5;
ret;
"""


@pytest.mark.parametrize(("value", "found"), [(0, 7), (-1, 5)])
@pytest.mark.parametrize("threads", [1, 32])
def test_a_guard_that_is_a_constant(value: int, found: int, threads: int) -> None:
    text = kernel(CONSTANT_GUARD.format(value=value), ".param .u64 a0")
    (left,) = launch(text, [np.full(4, 7, np.uint32)], block=(threads, 1, 1))
    assert left.tolist() == [found, 7, 7, 7]


COUNTS = [0, 1, 31, 32, 63, 64, 65, 2**31, 2**32, 2**32 + 1, 2**33 + 31, 2**63, 2**64 - 1]
VALUES = [7, 2**63 + 5, 2**64 - 1]


@pytest.mark.parametrize("arch", ["sm_50", "sm_75", "sm_90a", "sm_120"])
@pytest.mark.parametrize("name", ["shl", "shr"])
def test_shifts_by_more_than_32_bits_can_say(name: Any, arch: str) -> None:
    """LLVM cuts the counts of PTX's shifts to 32 bits: ferrule keeps that from changing them."""

    def shifted(builder: Any, left: ops.Value, right: ops.Value) -> ops.Value:
        value: ops.Value = builder.binary(name, left, right)
        return value

    made = program(operator_kernel("k", specs.Uint64, specs.Uint64, shifted))
    pairs = [(value, count) for value in VALUES for count in COUNTS]
    a, n = (np.array(side, np.uint64) for side in zip(*pairs, strict=True))
    found = ran(text_of(lowered_for(made, arch)), arch, a, n)
    way = {"shl": lambda x, c: (x << min(c, 64)) % 2**64, "shr": lambda x, c: x >> min(c, 64)}
    assert found.tolist() == [way[name](*pair) for pair in pairs]


FLOATS = {"float16": 15, "bfloat16": 127, "float32": 127, "float64": 1023}
INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]


@pytest.mark.parametrize("arch", ["sm_75", "sm_90a"])
@pytest.mark.parametrize("source", FLOATS)
def test_casts_of_floats_to_integers(source: str, arch: str) -> None:
    """NaN is 0, although `cvt` makes another number of it; beyond the range is the nearest."""
    bits, numbers = edges(source)
    kind = getattr(specs, source.capitalize().replace("Bf", "BF"))
    for target in INTEGERS:
        to = getattr(specs, target.capitalize())
        made = program(operator_kernel("k", kind, to, lambda b, x, _, to=to: b.cast(to, x)))
        found = ran(text_of(lowered_for(made, arch)), arch, bits, bits, result=target)
        info = np.iinfo(target)
        wanted = [
            0 if x != x else int(max(info.min, min(info.max, x if abs(x) == np.inf else int(x))))
            for x in numbers
        ]
        assert found.tolist() == wanted, (source, target)


def edges(source: str) -> tuple[Any, list[float]]:
    """Bits of floats around the ranges of integers, and what they are."""
    near = [sign * 2.0**n for sign in (1, -1) for n in (7, 8, 15, 16, 31, 32, 63, 64)]
    near = [x for x in near if abs(x) <= 2.0 ** FLOATS[source]]
    values = np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 0.75, -0.75, -1.5, *near])
    if source == "bfloat16":
        bits = (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    else:
        bits = values.astype(source).view(f"u{np.dtype(source).itemsize}")
    # The next number up and down of each that is finite and not 0, and the smallest subnormals.
    kept = bits[6:]
    top = 1 << 8 * bits.itemsize - 1
    bits = np.concatenate([bits, kept + 1, kept - 1, np.array([1, top + 1], bits.dtype)])
    if source == "bfloat16":
        return bits, (bits.astype(np.uint32) << 16).view(np.float32).tolist()
    return bits, bits.view(source).tolist()


def ran(text: str, arch: str, *inputs: Any, result: Any = np.uint64) -> Any:
    """What a kernel of one operator leaves."""
    gpu = machine(arch=arch)
    (entry,) = gpu.load(text).kernels.values()
    arrays = [*inputs, np.zeros(len(inputs[0]), result)]
    places = [gpu.memory.allocate(each.nbytes) for each in arrays]
    data = bytearray(entry.parameters[-1].offset + entry.parameters[-1].size)
    for parameter, place, each in zip(entry.parameters, places, arrays, strict=False):
        struct.pack_into("<Q", data, parameter.offset, place)
        np.ctypeslib.as_array(_bytes(place, each.nbytes))[:] = each.view(np.uint8)
    count = len(inputs[0])
    entry.launch((1, 1, 1), (count, 1, 1), smem=0, parameters=bytes(data))
    return np.ctypeslib.as_array(_bytes(places[-1], arrays[-1].nbytes)).view(result).copy()


def _bytes(place: int, size: int) -> Any:
    return (ctypes.c_uint8 * size).from_address(place)
