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


def ran(text: str, arch: str, *inputs: Any) -> Any:
    """What a kernel of one operator leaves."""
    gpu = machine(arch=arch)
    (entry,) = gpu.load(text).kernels.values()
    arrays = [*inputs, np.zeros_like(inputs[0])]
    places = [gpu.memory.allocate(each.nbytes) for each in arrays]
    data = bytearray(entry.parameters[-1].offset + entry.parameters[-1].size)
    for parameter, place, each in zip(entry.parameters, places, arrays, strict=False):
        struct.pack_into("<Q", data, parameter.offset, place)
        np.ctypeslib.as_array(_bytes(place, each.nbytes))[:] = each.view(np.uint8)
    count = len(inputs[0])
    entry.launch((1, 1, 1), (count, 1, 1), smem=0, parameters=bytes(data))
    return np.ctypeslib.as_array(_bytes(places[-1], 8 * count)).view(np.uint64).copy()


def _bytes(place: int, size: int) -> Any:
    return (ctypes.c_uint8 * size).from_address(place)
