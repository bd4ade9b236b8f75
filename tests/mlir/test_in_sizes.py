"""Which sizes of an MLIR function's arguments are the same, and what of a module is compiled."""

from __future__ import annotations

import numpy as np
import pytest
from mlir_functions import needs_mlir

import ferrule as fe
from ferrule import specs
from ferrule.frontends import mlir

pytestmark = needs_mlir

V = "memref<?xf32>"
M = "memref<?x?xf32>"


def shapes(text: str, **more: object) -> list[tuple[object, ...]]:
    """The shapes of the parameters, a symbol as its name."""
    params = mlir.compile(text, **more).signature.params  # type: ignore[arg-type]
    names: dict[object, str] = {}
    return [
        tuple(
            dim if isinstance(dim, int) else names.setdefault(dim, "abcdefgh"[len(names)])
            for dim in param.shape
        )
        for param in params
        if isinstance(param, specs.Tensor)
    ]


@pytest.mark.parametrize(
    ("arguments", "body", "wanted"),
    [
        (
            f"%x: {M}, %y: {M}, %z: {M}",
            f"linalg.matmul ins(%x, %y : {M}, {M}) outs(%z : {M})",
            [("a", "b"), ("b", "c"), ("a", "c")],
        ),
        (
            f"%x: {M}, %y: {M}",
            f"linalg.transpose ins(%x : {M}) outs(%y : {M}) permutation = [1, 0]",
            [("a", "b"), ("b", "a")],
        ),
        (f"%x: {V}, %y: {V}", f"memref.copy %x, %y : {V} to {V}", [("a",), ("a",)]),
        (
            f"%x: {V}, %y: memref<4xf32>",
            f"memref.copy %x, %y : {V} to memref<4xf32>",
            [(4,), (4,)],
        ),
        (
            f"%x: {V}, %y: {V}, %c: i1",
            f"scf.if %c {{ memref.copy %x, %y : {V} to {V} }}",
            [("a",), ("b",)],
        ),
        (
            f"%x: {V}, %y: {V}, %n: index",
            f"affine.for %i = 0 to %n {{ memref.copy %x, %y : {V} to {V} }}",
            [("a",), ("b",)],
        ),
        (
            f"%x: {V}, %y: {V}, %n: index",
            f"%s = memref.subview %y[1] [%n] [2] : {V} to memref<?xf32, strided<[2], offset: 1>>\n"
            f"memref.copy %x, %s : {V} to memref<?xf32, strided<[2], offset: 1>>",
            [("a",), ("b",)],
        ),
        (
            f"%x: {V}, %y: {V}",
            f"%0 = arith.constant 0 : index\n%n = memref.dim %x, %0 : {V}\n"
            f"%t = memref.alloc(%n) : {V}\nmemref.copy %t, %y : {V} to {V}\n"
            f"memref.dealloc %t : {V}",
            [("a",), ("a",)],
        ),
        (
            f"%x: {M}, %y: {M}, %z: {M}",
            "linalg.generic {indexing_maps = [affine_map<(i, j) -> (i + j, 0)>, "
            "affine_map<(i, j) -> (i, j)>], iterator_types = ['parallel', 'parallel']} "
            f"ins(%x : {M}) outs(%y : {M}) {{ ^bb0(%v: f32, %o: f32): linalg.yield %v : f32 }}",
            [("a", "b"), ("c", "d"), ("e", "f")],
        ),
    ],
)
def test_sizes_are_the_same_that_every_call_needs_to_be(
    arguments: str, body: str, wanted: list[tuple[object, ...]]
) -> None:
    body = body.replace("'", '"').replace("%0", "%c0")
    assert shapes(f"func.func @f({arguments}) {{\n{body}\nreturn\n}}") == wanted


def test_tensors_of_one_operation_have_one_shape() -> None:
    kind = "tensor<?x8xf32>"
    assert shapes(f"""
        func.func @f(%x: {kind}, %y: {kind}, %c: tensor<?xf32>) -> {kind} {{
          %sum = call @add(%x, %y) : ({kind}, {kind}) -> {kind}
          return %sum : {kind}
        }}
        func.func private @add(%x: {kind}, %y: {kind}) -> {kind} {{
          %r = arith.addf %x, %y : {kind}
          return %r : {kind}
        }}
    """) == [("a", 8), ("a", 8), ("b",)]


def test_a_spec_of_one_argument_is_what_others_are_tied_to() -> None:
    n = fe.sym_int64(divisibility=4)
    fn = mlir.compile(
        f"func.func @f(%x: {V}, %y: {V}) {{ memref.copy %x, %y : {V} to {V}\nreturn }}",
        specs={"y": specs.Tensor("y", (n,), "float32")},
    )
    y = np.zeros(8, np.float32)
    fn(np.ones(8, np.float32), y)
    assert y.all()
    with pytest.raises(ValueError, match="6"):
        fn(np.ones(6, np.float32), np.zeros(6, np.float32))


@pytest.mark.parametrize(
    "unused",
    [
        "func.func @unused() { call @elsewhere() : () -> ()\nreturn }\n"
        "func.func private @elsewhere()",
        "func.func private @unused() { call @elsewhere() : () -> ()\nreturn }\n"
        "func.func private @elsewhere()",
        "module @schedules attributes {transform.with_named_sequence} {\n"
        "transform.named_sequence @main(%m: !transform.any_op) { transform.yield } }",
    ],
)
def test_what_a_function_does_not_reach_is_not_compiled(unused: str) -> None:
    text = f"""
        {unused}
        func.func private @twice(%x: f32) -> f32 {{
          %r = arith.addf %x, %x : f32
          return %r : f32
        }}
        func.func @f(%x: f32) -> f32 {{
          %r = call @twice(%x) : (f32) -> f32
          return %r : f32
        }}
    """
    assert mlir.compile(text, "f")(1.5) == 3
