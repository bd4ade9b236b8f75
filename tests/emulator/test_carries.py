"""Integers of several words, by instructions with a carry."""

from __future__ import annotations

import numpy as np
import pytest
from ptx_programs import Array, integers, kernel, launch, pointers

LANES = 64


def words(count: int, bits: int, seed: int) -> Array:
    """Numbers of `count` words for each lane, with many words of ones and zeros."""
    found = np.stack([integers(f"uint{bits}", LANES, seed + i) for i in range(count)], 1)
    rng = np.random.default_rng(seed)
    ones = np.iinfo(found.dtype).max
    return np.where(rng.random(found.shape) < 0.3, ones, found).astype(found.dtype)


def whole(parts: Array) -> list[int]:
    bits = 8 * parts.dtype.itemsize
    return [sum(int(w) << bits * i for i, w in enumerate(row)) for row in parts]


def run(body: str, bits: int, given: list[Array], count: int) -> list[int]:
    """`count` words from registers d0, d1, ...; the operands are x0.., y0.., z0..."""
    lines, declared = ["mov.u32 %r0, %tid.x;"], [f".reg .b{bits} d<{count}>;"]
    size = bits // 8
    for number, (name, each) in enumerate(zip("xyz", given, strict=False)):
        many = each.shape[1]
        declared.append(f".reg .b{bits} {name}<{many}>;")
        lines += [f"ld.param.u64 %rd1, [a{number}];", f"mul.wide.u32 %rd2, %r0, {size * many};"]
        lines.append("add.u64 %rd1, %rd1, %rd2;")
        lines += [f"ld.global.b{bits} {name}{i}, [%rd1+{i * size}];" for i in range(many)]
    lines += [body, f"ld.param.u64 %rd1, [a{len(given)}];"]
    lines += [f"mul.wide.u32 %rd2, %r0, {size * count};", "add.u64 %rd1, %rd1, %rd2;"]
    lines += [f"st.global.b{bits} [%rd1+{i * size}], d{i};" for i in range(count)]
    out = np.zeros((LANES, count), given[0].dtype)
    text = kernel("\n".join([*lines, "ret;"]), pointers(len(given) + 1), "\n".join(declared))
    found = launch(text, [*given, out], block=(LANES, 1, 1))[-1]
    return whole(found.reshape(LANES, count))


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("op", ["add", "sub"])
def test_sums_and_differences(op: str, bits: int) -> None:
    body = (
        f"{op}.cc.u{bits} d0, x0, y0;\n{op}c.cc.u{bits} d1, x1, y1;\n{op}c.cc.s{bits} d2, x2, y2;\n"
    )
    body += f"{op}c.u{bits} d3, x3, y3;"
    a, b = words(4, bits, 1), words(4, bits, 9)
    sign = 1 if op == "add" else -1
    wanted = [(x + sign * y) % (1 << 4 * bits) for x, y in zip(whole(a), whole(b), strict=True)]
    assert run(body, bits, [a, b], 4) == wanted


@pytest.mark.parametrize("bits", [32, 64])
def test_products_of_two_words(bits: int) -> None:
    u = f"u{bits}"
    body = f"""mul.lo.{u} d0, x0, y0; mul.hi.{u} d1, x0, y0;
    mad.lo.cc.{u} d1, x1, y0, d1; madc.hi.{u} d2, x1, y0, 0;
    mad.lo.cc.{u} d1, x0, y1, d1; madc.hi.cc.{u} d2, x0, y1, d2; addc.{u} d3, 0, 0;
    mad.lo.cc.{u} d2, x1, y1, d2; madc.hi.{u} d3, x1, y1, d3;
    mad.hi.cc.{u} z0, x0, 0, 0; madc.lo.cc.{u} z0, 0, 0, d0; mov.b{bits} d0, z0;"""
    a, b = words(2, bits, 3), words(2, bits, 5)
    wanted = [x * y for x, y in zip(whole(a), whole(b), strict=True)]
    assert run(body, bits, [a, b, words(1, bits, 7)], 4) == wanted


def test_a_carry_of_lanes_that_went_apart() -> None:
    """Each lane has a carry of its own, over branches and for guarded instructions."""
    body = """setp.lt.u32 %p1, %r0, 20;
    add.cc.u32 d0, x0, y0;
    @%p1 bra L;
    sub.cc.u32 d0, y0, x0;
    L: addc.u32 d1, 0, 0;
    @!%p1 subc.u32 d1, 0, 0;"""
    a, b = words(1, 32, 1), words(1, 32, 2)
    found = run(body, 32, [a, b], 2)
    for lane, (x, y) in enumerate(zip(whole(a), whole(b), strict=True)):
        if lane < 20:
            assert found[lane] == x + y
        else:
            assert found[lane] == (y - x) % (1 << 64)


@pytest.mark.parametrize("bits", [32, 64])
def test_what_a_subtraction_leaves_for_an_addition(bits: int) -> None:
    """1 where nothing was borrowed: NVRTC's division of 128 bits counts on it."""
    body = f"sub.cc.u{bits} d0, x0, y0;\naddc.u{bits} d1, 0, 0;\n"
    body += f"add.cc.u{bits} z0, x0, y0;\nsubc.u{bits} d2, 9, 0;"
    x, y = words(1, bits, 1), words(1, bits, 2)
    y[::5] = x[::5]
    found = run(body, bits, [x, y, words(1, bits, 3)], 3)
    size = 1 << bits
    for value, a, b in zip(found, whole(x), whole(y), strict=True):
        parts = [(a - b) % size, int(a >= b), 9 if a + b >= size else 8]
        assert value == sum(part << bits * i for i, part in enumerate(parts))
