"""What is emitted: the text of small programs, the same every time, and no symbol from outside."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from cpu_machine import BASELINE, add_one, compile_program, elementwise, host, vector

from ferrule import specs
from ferrule.compiler.threads.state import RUN
from ferrule.language.codegen import lower_cpu
from ferrule.language.ir import ops
from ferrule.language.ir.builder import Builder
from ferrule.runtime.binaries.objectfile import read_object
from ferrule.specs import DType, Float16, Float32, Int32, sym_int

MAY_BE_CALLED = {"memcpy", "memset", RUN}
DTYPES = [
    dtype
    for dtype in specs.ALL_DTYPES
    if dtype.kind in ("int", "uint") or (dtype.kind == "float" and dtype.bits >= 16)
    if dtype.bits >= 8
]
INTEGER_OPS: tuple[ops.BinaryOp, ...] = ("add", "floordiv", "mod", "max", "shl", "shr")
FLOAT_OPS: tuple[ops.BinaryOp, ...] = ("add", "sub", "mul", "div", "max", "min")
FLOAT_UNARY: tuple[ops.UnaryOp, ...] = ("neg", "sqrt", "exp", "rsqrt")


def undefined(program: ops.Program, cpu: str | None) -> set[str]:
    return set(read_object(compile_program(program, cpu).data).undefined)


@pytest.mark.parametrize("cpu", [None, BASELINE])
@pytest.mark.parametrize("dtype", DTYPES)
def test_no_symbol_from_outside(dtype: DType, cpu: str | None) -> None:
    def everything(b: Builder, x: ops.Value, y: ops.Value) -> ops.Value:
        for op in INTEGER_OPS if dtype.is_integer else FLOAT_OPS:
            x = b.binary(op, x, y)
        for name in () if dtype.is_integer else FLOAT_UNARY:
            x = b.unary(name, x)
        for other in DTYPES:
            x = b.binary("add", x, b.cast(dtype, b.cast(other, x)))
        return x

    assert undefined(elementwise(everything, [dtype, dtype], dtype), cpu) <= MAY_BE_CALLED


def scalar_sum() -> ops.Program:
    """A loop that carries a value: `out[0] = a[0] + … + a[n - 1]`."""
    n, b = sym_int(symbol="n"), Builder()
    a, out = ops.Value(vector(Float32, n), "a"), ops.Value(vector(Float32, 1), "out")
    index, total, result = (
        ops.Value(dtype, hint) for dtype, hint in ((Int32, "i"), (Float32, "s"), (Float32, "s"))
    )
    with b.region() as body:
        with b.region() as loop:
            more = b.binary("add", total, b.load(a, (index,)))
        zero, one = b.constant(Int32, 0), b.constant(Int32, 1)
        start, stop = b.constant(Float32, 0.0), b.size(Int32, n)
        b.append(ops.For((result,), index, zero, stop, one, (start,), (total,), loop.freeze(more)))
        b.store(out, (zero,), result)
    return host("total", [a, out], body.freeze(), n)


PROGRAMS: dict[str, Callable[[], ops.Program]] = {
    "add_one": lambda: add_one(Float32),
    "total": scalar_sum,
    "half_sum": lambda: elementwise(
        lambda b, x, y: b.binary("add", x, y), [Float16, Float16], Float16
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_text(name: str, golden: Callable[[str, str], None]) -> None:
    golden(f"{name}.ll", lower_cpu(PROGRAMS[name]()).text)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_same_program_gives_the_same_text_and_bytes(name: str) -> None:
    first, second = (compile_program(PROGRAMS[name]()) for _ in range(2))
    assert first.body == second.body
    assert first.data == second.data


def test_only_the_host_function_is_visible() -> None:
    data = compile_program(add_one(Float32)).data
    assert read_object(data).defined == ("ferrule_body",)
