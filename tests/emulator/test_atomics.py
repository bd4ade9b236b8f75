"""Atomics: what they leave, and what they give back."""

from __future__ import annotations

import numpy as np
import pytest
from ptx_programs import kernel, launch, pointers

from ferrule.emulator.instructions.table import found
from ferrule.emulator.machine import Fault

THREADS = 32
TYPES = {"b32": np.uint32, "u32": np.uint32, "s32": np.int32, "b64": np.uint64, "u64": np.uint64,
         "s64": np.int64, "f32": np.float32, "f64": np.float64, "f16": np.float16}  # fmt: skip
PLACES = ("global", "shared", "generic")


def run(
    op: str, kind: str, place: str, first: float, more: str = "", *, red: bool = False
) -> tuple[object, list[object]]:
    """All threads add (…) their number + 1 to one place: what is left, and what each got."""
    dtype = np.dtype(TYPES[kind])
    bits = 8 * dtype.itemsize
    register = {16: "%h", 32: "%r", 64: "%rd"}[bits]
    a, old = f"{register}11", f"{register}12"
    body = "mov.u32 %r1, %tid.x; ld.param.u64 %rd1, [a0]; ld.param.u64 %rd2, [a1];\n"
    body += f"ld.param.u64 %rd3, [a2]; mul.wide.u32 %rd4, %r1, {bits // 8};\n"
    body += f"add.u64 %rd2, %rd2, %rd4; add.u64 %rd3, %rd3, %rd4; ld.global.b{bits} {a}, [%rd3];\n"
    body += ".shared .align 8 .b64 s; mov.u64 %rd5, s; cvta.shared.u64 %rd6, %rd5;\n"
    where = {"global": "%rd1", "shared": "%rd5", "generic": "%rd6"}[place]
    body += f"ld.global.b{bits} {register}10, [%rd1];\n"
    body += f"st.shared.b{bits} [%rd5], {register}10; bar.sync 0;\n"
    space = "" if place == "generic" else f".{place}"
    if red:
        body += f"red{space}.{op}.{kind} [{where}], {a}; mov.b{bits} {old}, 0;\n"
    else:
        body += f"atom{space}.{op}.{kind} {old}, [{where}], {a}{more};\n"
    body += f"st.global.b{bits} [%rd2], {old}; bar.sync 0;\n"
    if place != "global":
        body += f"ld.shared.b{bits} {a}, [%rd5]; st.global.b{bits} [%rd1], {a};\n"
    values = (np.arange(THREADS) + 1).astype(dtype)
    given = [np.array([first], dtype), np.zeros(THREADS, dtype), values]
    left, got, _ = launch(kernel(body + "ret;", pointers(3)), given, block=(THREADS, 1, 1))
    return left[0], list(got)


def one_by_one(step: object, first: float) -> tuple[object, list[object]]:
    """The same where the threads come in their order."""
    value, got = first, []
    for i in range(1, THREADS + 1):
        got.append(value)
        value = step(value, i)  # type: ignore[operator]
    return value, got


STEPS = {
    "add": lambda v, i: v + i, "min": min, "max": max, "and": lambda v, i: v & i,
    "or": lambda v, i: v | i, "xor": lambda v, i: v ^ i, "exch": lambda v, i: i,
    "inc": lambda v, i: 0 if v >= i else v + 1, "dec": lambda v, i: i if v == 0 or v > i else v - 1,
}  # fmt: skip
KINDS = {"add": ("u32", "s32", "u64", "f32", "f64"), "min": ("u32", "s32", "u64", "s64"),
         "max": ("u32", "s32", "u64", "s64"), "and": ("b32", "b64"), "or": ("b32", "b64"),
         "xor": ("b32", "b64"), "exch": ("b32", "b64"), "inc": ("u32",),
         "dec": ("u32",)}  # fmt: skip


@pytest.mark.parametrize("op", STEPS)
def test_atomics(op: str) -> None:
    for number, kind in enumerate(KINDS[op]):
        first = 40 if kind[0] != "s" else -7 if op != "min" else 50
        left, got = run(op, kind, PLACES[number % 3], first)
        wanted, each = one_by_one(STEPS[op], first)
        assert (left, sorted(got)) == (wanted, sorted(each)), kind


@pytest.mark.parametrize("op", ["add", "min", "max", "and", "or", "xor", "inc", "dec"])
def test_reductions(op: str) -> None:
    kind = KINDS[op][0]
    assert run(op, kind, "global", 40, red=True)[0] == one_by_one(STEPS[op], 40)[0]


@pytest.mark.parametrize("place", PLACES)
def test_halves(place: str) -> None:
    left, got = run("add.noftz", "f16", place, 0)
    wanted, each = np.float16(0), []
    for i in range(1, THREADS + 1):
        each.append(wanted)
        wanted = np.float16(wanted + np.float16(i))
    assert left == wanted
    assert sorted(got) == sorted(each)


def test_exchange_where_equal() -> None:
    """Only one thread finds what it looks for."""
    for kind in ("b32", "b64"):
        left, got = run("cas", kind, "global", 5, f", {'%r11' if kind == 'b32' else '%rd11'}")
        assert (left, got) == (5, [5] * THREADS)


def test_names() -> None:
    """Orders, scopes and spaces at their places, and nothing else."""
    for name in ("atom.add.u32", "atom.gpu.global.add.u32",
                 "atom.acq_rel.sys.shared::cta.cas.b64", "red.relaxed.gpu.global.add.f32",
                 "atom.global.sys.add.u64", "atom.global.gpu.acq_rel.add.f32",
                 "atom.global.acq_rel.gpu.cas.b32", "atom.add.relaxed.gpu.u32",
                 "atom.global.v8.f16.max.noftz", "red.global.add.noftz.L2::cache_hint.v2.bf16x2",
                 "ld.global.acquire.gpu.b32", "ld.shared.volatile.v2.f32",
                 "st.global.release.gpu.b32",
                 "atom.relaxed.cta.shared.exch.b32"):  # fmt: skip
        assert found(name), name
    for name in ("atom.add.s64", "atom.min.f32", "atom.global.global.add.u32", "atom.add.f16",
                 "red.exch.b32", "atom.inc.s32", "atom.shared.add.v2.f32", "atom.add.v8.f32",
                 "atom.global.add.v2.f16", "atom.global.min.v2.f32", "atom.acq_rel.const.add.u32",
                 "atom.xor.u32", "ld.release.acquire.gpu.b32", "ld.global.shared.b32"):  # fmt: skip
        assert found(name) is None, name


VECTORS = [
    ("add.v2.f32", np.float32, 2), ("add.v4.f32", np.float32, 4),
    *[(f"{op}.noftz.v8.f16", np.float16, 8) for op in ("add", "min", "max")],
    ("add.noftz.v4.f16x2", np.float16, 8), ("min.noftz.L2::cache_hint.v2.f16x2", np.float16, 4),
]  # fmt: skip


@pytest.mark.parametrize(("name", "dtype", "count"), VECTORS)
@pytest.mark.parametrize("red", [True, False])
def test_vectors(name: str, dtype: type, count: int, red: bool) -> None:
    """Each element by itself; a float16 minimum passes NaN by."""
    registers = int(name.rpartition("v")[2].partition(".")[0])
    each = 8 * count * np.dtype(dtype).itemsize // registers
    word = {16: "%h", 32: "%r"}[each]
    given, old = (
        "{" + ", ".join(f"{word}{start + i}" for i in range(registers)) + "}" for start in (4, 12)
    )
    policy = ", %rd9" if "hint" in name else ""
    body = "ld.param.u64 %rd1, [a0]; ld.param.u64 %rd2, [a1]; ld.param.u64 %rd3, [a2];\n"
    size = each // 8
    for i in range(registers):
        body += f"ld.global.b{each} {word}{4 + i}, [%rd2+{i * size}];\n"
    body += (
        f"red.global.{name} [%rd1], {given}{policy};\n"
        if red
        else f"atom.global.{name} {old}, [%rd1], {given}{policy};\n"
    )
    for i in range(0 if red else registers):
        body += f"st.global.b{each} [%rd3+{i * size}], {word}{12 + i};\n"
    first = np.arange(count).astype(dtype) - 3
    second = np.array([np.nan if i == 1 else 2.5 - i for i in range(count)], dtype)
    zero = np.zeros(count, dtype)
    ptx = kernel(body + "ret;", pointers(3))
    left, _, got = launch(ptx, [first, second, zero], block=(1, 1, 1))
    step = {"add": np.add, "min": np.fmin, "max": np.fmax}[name[:3]]
    assert np.array_equal(left, step(first, second), equal_nan=True)
    assert np.array_equal(got, zero if red else first)


def test_the_address_of_a_vector_is_a_multiple_of_all() -> None:
    body = "ld.param.u64 %rd1, [a0]; red.global.add.v4.f32 [%rd1+8], {%f0, %f1, %f2, %f3}; ret;"
    with pytest.raises(Fault, match="no multiple of 16"):
        launch(kernel(body, pointers(1)), [np.zeros(16, np.float32)])
