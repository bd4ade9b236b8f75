"""Sums of 16-bit floats with float32, and parameters of all sizes beside each other."""

from __future__ import annotations

import ctypes
import struct

import numpy as np
import pytest
from ptx_programs import apply, floats, kernel, machine, same_floats


@pytest.mark.parametrize("more", ["", ".sat"])
def test_mixed_sums_and_products(more: str) -> None:
    a, b = floats(np.float16, 400, 1), floats(np.float16, 400, 2)
    c = floats(np.float32, 400, 3)
    wide, other = a.astype(np.float32), b.astype(np.float32)
    with np.errstate(all="ignore"):
        wanted = {
            "add": wide + c,
            "sub": wide - c,
            # The product is exact in 22 bits, and its sum with a float32 of float64's, or far off.
            "fma": (wide.astype(np.float64) * other + c).astype(np.float32),
        }
    for name, value in wanted.items():
        expected = np.clip(np.nan_to_num(value, nan=0.0), 0, 1) if more else value
        given = [a.view(np.uint16), *([b.view(np.uint16)] if name == "fma" else []), c]
        found = apply(f"{name}.rn{more}.f32.f16", [*given[:-1], c.view(np.uint32)], np.uint32)
        near = found.view(np.float32)
        if name == "fma":
            np.testing.assert_allclose(near, expected, rtol=1e-6)
        else:
            assert same_floats(near, expected + np.float32(0) if more else expected), name


def test_parameters_of_all_sizes() -> None:
    """Gaps between them count."""
    gpu = machine()
    sizes = {"u8": 1, "u64": 8, "u16": 2, "u32": 4}
    names = ", ".join(f".param .{kind} p{i}" for i, kind in enumerate(sizes))
    loads = "".join(
        f"ld.param.{kind} %{'rd' if size == 8 else 'r'}{i + 1}, [p{i}];\n"
        for i, (kind, size) in enumerate(sizes.items())
    )
    stores = "".join(
        f"st.global.u{64 if size == 8 else 32} [%rd0+{8 * i}], "
        f"%{'rd' if size == 8 else 'r'}{i + 1};\n"
        for i, size in enumerate(sizes.values())
    )
    text = kernel(f"ld.param.u64 %rd0, [out];\n{loads}{stores}ret;", f".param .u64 out, {names}")
    place = gpu.memory.allocate(32)
    given = (0x81, 0x8234567812345678, 0x8765, 0x87654321)
    parameters = struct.pack("<QB7xQH2xI", place, *given)
    gpu.load(text).kernels["k"].launch((1, 1, 1), (1, 1, 1), smem=0, parameters=parameters)
    found = struct.unpack("<I4xQI4xI", ctypes.string_at(place, 28))
    assert found == given
