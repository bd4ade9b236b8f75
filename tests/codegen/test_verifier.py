"""Every rule of the IR's verifier: what breaks it is found and named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from cpu_machine import add_one, elementwise, host, vector

from ferrule.compiler.artefacts import Fault
from ferrule.language.ir import ops
from ferrule.language.ir.builder import Builder
from ferrule.language.ir.rules.verifier import VerifierError, verify
from ferrule.language.ir.types import HandleType, TensorType
from ferrule.specs import Boolean, DType, Float32, Float64, Int8, Int32, Int64, Uint8, sym_int

FAULT = Fault("ValueError", "no")


def value(dtype: ops.Type, hint: str = "v") -> ops.Value:
    return ops.Value(dtype, hint)


def refused(rule: str, *made: ops.Op, params: tuple[ops.Value, ...] = ()) -> None:
    with pytest.raises(VerifierError, match=rule):
        verify(host("broken", params, ops.Region(made)))


def refused_kernel(rule: str, *made: ops.Op) -> None:
    kernel = ops.Function("k", "kernel", (), ops.Region(made))
    program = replace(host("broken", (), ops.Region()), kernels=(kernel,))
    with pytest.raises(VerifierError, match=rule):
        verify(program)


def constant(dtype: ops.Type, number: int | float = 1) -> tuple[ops.Value, ops.Constant]:
    result = value(dtype, "c")
    return result, ops.Constant(result, number)


def test_good_programs_pass() -> None:
    verify(add_one(Float32))
    verify(elementwise(lambda b, x: b.unary("exp", x), [Float32], Float32))


def test_definitions_and_uses() -> None:
    one, made = constant(Int32)
    two = value(Int32)
    refused("used where it is not defined", ops.Unary(two, "neg", one))
    refused("defined twice", made, made)
    refused("defined twice", made, params=(one,))
    inner = ops.Region((made,))
    flag, flagged = constant(Boolean)
    outside = ops.Unary(two, "neg", one)
    refused("used where it is not defined", flagged, ops.If((), flag, inner, ops.Region()), outside)


def test_symbols_belong_to_the_program() -> None:
    n = sym_int(symbol="n")
    refused("no symbol of the program: n", ops.Size(value(Int32), n))
    refused("no symbol of the program: n", params=(value(vector(Float32, n)),))


def test_symbols_that_a_function_makes_get_their_values() -> None:
    n = sym_int()
    size = ops.Size(value(Int64), n)
    reads = replace(host("broken", (), ops.Region((size,))), symbols={n: "n"}, made=frozenset({n}))
    with pytest.raises(VerifierError, match="@broken reads n, and no op gives it a value"):
        verify(reads)
    one, made = constant(Int64)
    body = ops.Region((made, ops.Define(n, one), size))
    verify(replace(reads, host=replace(reads.host, body=body)))


@pytest.mark.parametrize(
    ("op", "dtype"),
    [("neg", Boolean), ("not", Float32), ("exp", Int32), ("sqrt", Int32)],
)
def test_unary_dtypes(op: ops.UnaryOp, dtype: ops.Type) -> None:
    x, made = constant(dtype)
    refused(f"the operand of {op}", made, ops.Unary(value(dtype), op, x))


@pytest.mark.parametrize(
    ("op", "dtype"),
    [("add", Boolean), ("div", Int32), ("floordiv", Float32), ("and", Float32), ("shl", Boolean)],
)
def test_binary_dtypes(op: ops.BinaryOp, dtype: ops.Type) -> None:
    x, made = constant(dtype)
    refused(f"the operands of {op}", made, ops.Binary(value(dtype), op, x, x))


def test_operands_have_one_dtype() -> None:
    x, made = constant(Int32)
    y, other = constant(Int64)
    flag, flagged = constant(Boolean)
    all_made = (made, other, flagged)
    wrong = "wrong types or number"
    refused(wrong, *all_made, ops.Binary(value(Int32), "add", x, y))
    refused(wrong, *all_made, ops.Compare(value(Boolean), "lt", x, y))
    refused(wrong, *all_made, ops.Compare(value(Int32), "lt", x, x))
    refused(wrong, *all_made, ops.Select(value(Int32), flag, x, y))
    refused(wrong, *all_made, ops.Select(value(Int32), x, x, x))
    refused("keeps the size", *all_made, ops.Bitcast(value(Float32), y))
    refused("of kind", *all_made, ops.Bitcast(value(Uint8), flag))


def test_rests_of_products_are_of_float32() -> None:
    wide, made = constant(Float64)
    refused("only fma of float32", made, ops.Fma(value(Float64), wide, wide, wide, rest=True))


def test_constants_fit_their_dtype() -> None:
    refused("does not hold", ops.Constant(value(Int8), 128))
    refused("does not hold", ops.Constant(value(Int32), 1.5))
    refused("does not hold", ops.Constant(value(Boolean), 2))


def test_sizes_and_faults() -> None:
    refused("Int32 or Int64", ops.Size(value(Uint8), 3))
    refused_kernel("a kernel has no fault", ops.Size(value(Int32), 3, FAULT))
    flag, made = constant(Boolean)
    refused("too many values", made, ops.Check(flag, FAULT, (flag,) * 9))
    x, number = constant(Float32)
    refused("the value of a fault", made, number, ops.Check(flag, FAULT, (x,)))


def test_what_kernels_and_hosts_have() -> None:
    refused_kernel("outside Parallel", ops.Parallel((), (), ops.Region()))
    refused("only a kernel has threads", ops.Special(value(Int32), "thread_idx", 0))
    refused_kernel("three axes", ops.Special(value(Int32), "thread_idx", 3))
    inner = ops.Parallel((), (), ops.Region())
    refused("outside Parallel", ops.Parallel((), (), ops.Region((inner,))))


@pytest.mark.parametrize(
    ("format_", "dtype"),
    [("%lld", Int32), ("%s", Int64), ("%g", Float32), ("%d", Int64), ("%lld %lld", Int64)],
)
def test_prints(format_: str, dtype: DType) -> None:
    x, made = constant(dtype)
    refused("a Print has", made, ops.Print(format_, (x,)))


def test_elements() -> None:
    tensor, flat = value(vector(Float32, 4), "t"), value(Float32)
    i, made = constant(Int32)
    x, number = constant(Float32)
    params = (tensor,)
    refused("one index for each dim", made, ops.Load(flat, tensor, (i, i)), params=params)
    refused("an index", number, ops.Load(flat, tensor, (x,)), params=params)
    refused("elements", made, ops.Load(value(Int32), tensor, (i,)), params=params)
    refused("elements", made, ops.Store(tensor, (i,), i), params=params)
    refused("only a tensor", made, ops.Load(flat, i, (i,)), params=params)


def test_views() -> None:
    tensor, handle = value(vector(Float32, 4), "t"), value(HandleType("pointer"), "p")
    i, made = constant(Int32)
    x, number = constant(Float32)
    params, other = (tensor, handle), value(vector(Int32, 4))
    same = value(vector(Float32, 4))
    refused("a view is a tensor", ops.View(value(Float32), tensor), params=params)
    refused("of a tensor or a pointer", made, ops.View(same, i), params=params)
    refused("only a tensor", made, ops.View(same, handle, (i,)), params=params)
    refused("one index for each dim", made, ops.View(same, tensor, (i, i)), params=params)
    refused("an index", number, ops.View(same, tensor, (x,)), params=params)
    refused("keeps the dtype", made, ops.View(other, tensor, (i,)), params=params)


def test_parts_of_tensors() -> None:
    tensor, point = value(vector(Float32, 4), "t"), value(TensorType(Float32, (), (), 4), "p")
    k, made = constant(Int64)
    short, wrong = constant(Int32)
    part = value(vector(Float32, 2))
    refused("with rows", made, ops.Shrink(part, point, k), params=(point,))
    refused(
        "the first size alone",
        made,
        ops.Shrink(value(vector(Int32, 2)), tensor, k),
        params=(tensor,),
    )
    refused("the size of a Shrink", wrong, ops.Shrink(part, tensor, short), params=(tensor,))


def test_launches() -> None:
    one, made = constant(Int64)
    sizes = (one, one, one)
    refused("no kernel @k", made, ops.Launch("k", sizes, sizes, ()))
    program = add_one(Float32)
    b = Builder()
    with b.region() as body:
        number = b.constant(Int64, 1)
        b.append(ops.Launch("device_add_one", (number,) * 3, (number,) * 3, ()))
    broken = replace(program, host=replace(program.host, body=body.freeze()))
    with pytest.raises(VerifierError, match="the arguments of a launch"):
        verify(broken)


def test_structured_ops() -> None:
    x, made = constant(Int32)
    flag, flagged = constant(Boolean)
    all_made, wrong = (made, flagged), "wrong types or number"
    yields, empty = ops.Region((), (x,)), ops.Region()
    refused(wrong, *all_made, ops.If((value(Int32),), flag, yields, empty))
    refused(wrong, *all_made, ops.If((), x, empty, empty))
    index, carried = value(Int32), value(Int32)
    refused(wrong, *all_made, ops.For((), index, x, x, flag, (), (), empty))
    refused(wrong, *all_made, ops.For((), index, x, x, x, (x,), (), empty))
    refused(wrong, *all_made, ops.For((value(Int32),), index, x, x, x, (x,), (carried,), empty))
    refused(wrong, *all_made, ops.While((), (), (), ops.Region((), (x,)), empty))
    refused(wrong, *all_made, ops.Parallel((value(Int64),), (x,), empty))


def kernel_as_host(program: ops.Program) -> ops.Program:
    return replace(program, kernels=(replace(program.kernels[0], kind="host"),))


CHANGES: list[tuple[str, Callable[[ops.Program], ops.Program]]] = [
    ("two kernels", lambda p: replace(p, kernels=p.kernels * 2)),
    ("is a host, not a kernel", kernel_as_host),
    ("is a kernel, not a host", lambda p: replace(p, host=p.kernels[0], kernels=())),
]


@pytest.mark.parametrize(("rule", "change"), CHANGES)
def test_functions(rule: str, change: Callable[[ops.Program], ops.Program]) -> None:
    with pytest.raises(VerifierError, match=rule):
        verify(change(add_one(Float32)))


def test_the_error_shows_the_op() -> None:
    x, made = constant(Int32)
    with pytest.raises(VerifierError) as caught:
        verify(host("broken", (), ops.Region((made, ops.Unary(value(Int32), "exp", x)))))
    assert str(caught.value) == (
        "in host @broken: the operand of exp must be of kind float: Unary exp (%c: int32)"
    )
