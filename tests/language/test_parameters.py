"""Parameters of every kind: what the language sees of them, called with real arguments."""

from __future__ import annotations

import ctypes
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Optional, Tuple, Union  # noqa: UP035

import numpy as np
import pytest
import tvm_ffi
from lowered import lower, text, vector

import ferrule as fe
from ferrule import specs
from ferrule.language.examples import bind_examples
from ferrule.language.faces.base import Constexpr, Shape, Stride
from ferrule.specs import params

CPU = "--enable-tvm-ffi --target cpu"


def run(function: Any, *examples: Any, **keywords: Any) -> Any:
    return fe.compile(function, *examples, options=CPU, **keywords)


def out(size: int = 4, dtype: str = "float32") -> np.ndarray:
    return np.full(size, -1, dtype)


def derived(function: Any, *examples: Any) -> tuple[params.Param, ...]:
    return bind_examples(function, examples, {}).parameters


# ---- examples become specs ----


class Pair(NamedTuple):
    data: fe.Tensor
    factor: fe.Float32 = 2.0


@dataclass
class Config:
    size: fe.Int32
    mode: Constexpr[int] = 3
    eps: fe.Float64 = 0.5


def takes(x):
    pass


def test_examples_without_annotations() -> None:
    n = fe.sym_int(symbol="n")
    a = fe.make_fake_compact_tensor(fe.Float32, (n,))
    cases: list[tuple[Any, params.Param]] = [
        (None, params.NoneValue("x")),
        (True, params.Scalar("x", "bool")),
        (3, params.Scalar("x", "int32")),
        (0.5, params.Scalar("x", "float32")),
        (fe.Int8(3), params.Scalar("x", "int8")),
        (fe.Float64, params.Scalar("x", "float64")),
        ("text", params.String("x")),
        (b"bytes", params.Bytes("x")),
        (a, params.Tensor("x", (n,), "float32", strides=(1,))),
        ((1, None), params.Tuple("x", (params.Scalar("0", "int32"), params.NoneValue("1")))),
        ((), params.Tuple("x", ())),
        (params.Map("anything"), params.Map("x")),
    ]
    for example, expected in cases:
        assert derived(takes, example) == (expected,)


def test_annotations_decide() -> None:
    def shapes(s: Shape, t: Stride):
        pass

    def optional(x: Optional[fe.Float32], y: fe.Int8 | None = None):  # noqa: UP045
        pass

    def union(x: Union[fe.Tensor, fe.Float32, str]):  # noqa: UP007
        pass

    n = fe.sym_int(symbol="n")
    first, second = derived(shapes, (n, 4), (1, (2, n)))
    assert first == params.Shape("s", (n, 4))
    assert str(specs.Signature("f", (second,))) == "f(t: Tuple[Stride([1]), Stride([2, n])])"
    first, second = derived(optional, None)
    assert first == params.Optional("x", params.Scalar("x", "float32"))
    assert second == params.Optional("y", params.Scalar("y", "int8"), default=None)
    (both,) = derived(union, vector(symbol="n"))
    assert str(specs.Signature("f", (both,))) == "f(x: Union[Tensor([n], float32), float32, str])"


def annotated(annotation: Any) -> Any:
    """A function whose parameter has this annotation."""

    def takes(x: Any) -> None:
        pass

    takes.__annotations__["x"] = annotation
    return takes


@pytest.mark.parametrize(
    ("annotation", "example", "expected"),
    [
        (params.Scalar("p", "int8"), 3, params.Scalar("x", "int8")),
        (params.Scalar("p", "int8"), fe.Int32, params.Scalar("x", "int8")),
        (params.DataType("p"), "int8", params.DataType("x")),
        (params.Bytes("p"), b"b", params.Bytes("x")),
        (params.Optional("p", params.String("p")), None, "Optional[str]"),
        (params.Scalar("p", "int8"), params.Scalar("q", "int16"), params.Scalar("x", "int16")),
    ],
)
def test_an_annotation_that_is_a_spec_decides(annotation: Any, example: Any, expected: Any) -> None:
    """But for a spec as example, which is given as it is."""
    (found,) = derived(annotated(annotation), example)
    assert found == expected or str(specs.Signature("f", (found,))) == f"f(x: {expected})"


@pytest.mark.parametrize(
    ("annotation", "example"),
    [
        (params.Bytes("p"), "text"),
        (params.Scalar("p", "int8"), 300),
        (params.Tensor("p", (4,), "float32"), 3),
    ],
)
def test_an_example_is_what_its_annotation_says(annotation: Any, example: Any) -> None:
    with pytest.raises(fe.CompileError, match="is none of what its annotation says"):
        derived(annotated(annotation), example)


@pytest.mark.parametrize(
    ("annotation", "example", "expected"),
    [
        (fe.Float64 | None, params.Scalar("p", "int8"), "Optional[int8]"),
        (fe.Float64 | None, params.Optional("p", params.Scalar("p", "int8")), "Optional[int8]"),
        (fe.Tensor | None, params.Tensor("p", (4,), "int8"), "Optional[Tensor([4], int8)]"),
        (
            fe.Int32 | str,
            params.Union("p", (params.Bytes("p"), params.String("p"))),
            "Union[bytes, str]",
        ),
    ],
)
def test_a_spec_is_given_as_it_is(annotation: Any, example: Any, expected: str) -> None:
    (found,) = derived(annotated(annotation), example)
    assert str(specs.Signature("f", (found,))) == f"f(x: {expected})"


def test_a_spec_for_one_of_several_kinds_is_refused() -> None:
    with pytest.raises(fe.CompileError, match="is one of several kinds"):
        derived(annotated(fe.Int32 | str), params.Scalar("p", "int8"))


def test_records() -> None:
    def record(p: Pair, c: Config):
        pass

    n = vector(symbol="n")
    pair, config = derived(record, Pair(n), Config(4))
    assert pair.fields and [item.name for item in pair.items] == ["data", "factor"]
    assert config.items[1] == params.Constant("mode", 3)
    assert config.items[2] == params.Scalar("eps", "float64")


def test_examples_that_cannot_be_used() -> None:
    def shape(s: Shape):
        pass

    def pairs(t: Tuple[fe.Int32, fe.Int32]):  # noqa: UP006
        pass

    def constant(c: Config):
        pass

    with pytest.raises(fe.CompileError, match="1.5 is no size"):
        derived(shape, (1.5,))
    with pytest.raises(fe.CompileError, match="it has 3 items"):
        derived(pairs, (1, 2, 3))
    with pytest.raises(fe.CompileError, match=r"\[\] is no constant"):
        derived(constant, Config(1, mode=[]))
    with pytest.raises(fe.CompileError, match=r"\*\*kwargs are not supported"):
        bind_examples(lambda **kwargs: None, (), {"a": 1})


# ---- what the language makes of them ----


def sum_of_tuple(t, b):
    (x, (y, z)), k = t
    b[0] = x + y * z
    b[1] = k[0]


def test_tuples() -> None:
    b = out()
    f = run(sum_of_tuple, ((1.0, (2, 3.0)), vector(symbol="n")), vector(symbol="m"))
    f(((1.5, (2, 4.0)), np.array([7], np.float32)), b)
    assert b[:2].tolist() == [9.5, 7.0]
    f(t=[(1.5, [2, 4.0]), np.array([8], np.float32)], b=b)
    assert b[1] == 8
    with pytest.raises(ValueError, match=r"expected tuple size=2, but got tuple size=3"):
        f(((1.5, (2, 4.0)), np.array([7], np.float32), 1), b)
    with pytest.raises(TypeError, match=r"t\[0\]\[1\]\[0\] in argument #0 .* expected int"):
        f(((1.5, ("2", 4.0)), np.array([7], np.float32)), b)


def use_records(p: Pair, c: Config, b):
    b[0] = p.data[0] * p.factor + c.size
    b[1] = c.mode + c.eps


def test_named_tuples_and_dataclasses() -> None:
    b = out(2, "float64")
    f = run(use_records, Pair(vector(symbol="n")), Config(1), vector(fe.Float64, "m"))
    a = np.array([3], np.float32)
    f(Pair(a), Config(5), b)
    assert b.tolist() == [11.0, 3.5]
    f((a, 1.0), (5, 3, 1.5), b)
    assert b.tolist() == [8.0, 4.5]
    with pytest.raises(ValueError, match=r"expected 3, but got 4"):
        f(Pair(a), Config(5, mode=4), b)


def optional_bias(a: fe.Tensor, bias: Optional[fe.Tensor], b: fe.Tensor):  # noqa: UP045
    if bias is None:
        b[0] = a[0]
    else:
        b[0] = a[0] + bias[0]
    b[1] = 1.0 if bias is not None and bias[0] > 2.0 else 0.0


def test_optional() -> None:
    n = vector(symbol="n")
    f = run(optional_bias, n, vector(symbol="k"), vector(symbol="m"))
    a, b = np.array([1], np.float32), out(2)
    f(a, None, b)
    assert b.tolist() == [1.0, 0.0]
    f(a, np.array([5, 6], np.float32), b)
    assert b.tolist() == [6.0, 1.0]
    with pytest.raises(ValueError, match="expected dtype=float32, but got dtype=float64"):
        f(a, np.array([5.0]), b)
    with pytest.raises(TypeError, match="expected Tensor or None|expected Optional"):
        f(a, 3, b)


def unguarded(a: Optional[fe.Tensor], b):  # noqa: UP045
    b[0] = a[0]


def union_value(x: Union[fe.Tensor, fe.Float32, str], b):  # noqa: UP007
    if isinstance(x, fe.Tensor):
        b[0] = x[0]
    elif isinstance(x, fe.Float32):
        b[0] = x * 2
    else:
        b[0] = -5.0


def test_union() -> None:
    f = run(union_value, vector(symbol="n"), vector(symbol="m"))
    b = out(1)
    for value, expected in [(np.array([3], np.float32), 3.0), (4, 8.0), (0.25, 0.5), ("x", -5.0)]:
        f(value, b)
        assert b[0] == expected
    with pytest.raises(TypeError, match="expected .*Tensor.*float.*str"):
        f(None, b)


def test_values_that_may_be_absent_are_guarded() -> None:
    with pytest.raises(
        fe.CompileError, match="the optional parameter a cannot be indexed"
    ) as caught:
        lower(unguarded, vector(symbol="n"), vector(symbol="m"))
    assert caught.value.diagnostic.hint == "use it inside `if a is not None:`"

    def unguarded_union(x: Union[fe.Tensor, fe.Float32], b):  # noqa: UP007
        b[0] = x + 1

    with pytest.raises(fe.CompileError, match="the union parameter x"):
        lower(unguarded_union, vector(symbol="n"), vector(symbol="m"))


def use_shape(s: Shape, a, b):
    m, k = s
    b[0] = m * 10 + k
    b[1] = a.shape[0]


def test_shapes_bind_and_check_symbols() -> None:
    n = fe.sym_int(symbol="n")
    a = fe.make_fake_compact_tensor(fe.Float32, (n,))
    f = run(use_shape, (n, None), a, vector(symbol="m"))
    b = out()
    x = np.zeros(3, np.float32)
    for shape in [(3, 7), [3, 7], tvm_ffi.Shape((3, 7))]:
        b[:] = 0
        f(shape, x, b)
        assert b[:2].tolist() == [37.0, 3.0]
    with pytest.raises(ValueError, match=r"expected to match s\[0\] = 4, but got 3"):
        f((4, 7), x, b)
    with pytest.raises(ValueError, match="expected shape size=2, but got shape size=3"):
        f((3, 7, 1), x, b)


def pass_on(p, s, name, flag: fe.Boolean, b):
    b[0] = 1.0 if flag else 2.0


def test_handles_are_taken_and_checked() -> None:
    f = run(
        pass_on,
        fe.runtime.make_ptr(fe.Float32, 0),
        fe.runtime.make_fake_stream(),
        "name",
        True,
        vector(symbol="n"),
    )
    b = out()
    for pointer in (ctypes.c_void_p(8), None, 64):
        for stream in (None, 0, ctypes.c_void_p(3)):
            f(pointer, stream, "äöü", np.bool_(False), b)
            assert b[0] == 2
    with pytest.raises(TypeError, match="argument #2 .*expected str, but got int"):
        f(None, None, 3, True, b)
    with pytest.raises(TypeError, match="argument #0 "):
        f(np.zeros(3), None, "", True, b)


def constexpr(a, k: Constexpr, j: Constexpr[int] = 3):
    for i in fe.range_constexpr(k):
        a[i] = j


def test_constexpr_parameters_are_gone_from_the_call() -> None:
    f = run(constexpr, vector(symbol="n"), 2)
    assert str(f.signature) == "constexpr(a: Tensor([n], float32))"
    a = out()
    f(a)
    assert a.tolist() == [3, 3, -1, -1]
    with pytest.raises(TypeError, match=r"constexpr\(\) takes 1 positional argument but 2"):
        f(a, 2)
    jitted = fe.jit(constexpr)
    jitted(a, 1, j=9)
    assert a.tolist() == [9, 3, -1, -1]
    jitted(a, 1, j=8)
    assert a[0] == 8


def variadic(b, *tensors):
    total = 0.0
    for t in tensors:
        total += t[0]
    b[0] = total


def test_variadic_parameters() -> None:
    f = run(variadic, vector(symbol="m"), *[vector(symbol=None) for _ in range(3)])
    b = out()
    f(b, *(np.full(2, x, np.float32) for x in (1, 2, 3)))
    assert b[0] == 6


def with_stream(a, b, stream):
    kernel(a, b).launch(grid=a.shape[0], block=1, stream=stream)


@fe.kernel
def kernel(a, b):
    i = fe.arch.block_idx()[0]
    b[i] = a[i]


def test_env_stream_is_no_argument() -> None:
    n = vector(symbol="n")
    stream = fe.runtime.make_fake_stream(use_tvm_ffi_env_stream=True)
    f = run(with_stream, n, n, stream)
    assert str(f.signature) == "with_stream(a: Tensor([n], float32), b: Tensor([n], float32))"
    b = out()
    f(np.arange(4, dtype=np.float32), b)
    assert b.tolist() == [0, 1, 2, 3]
    g = run(with_stream, n, n, fe.runtime.make_fake_stream())
    g(np.arange(4, dtype=np.float32), b, None)


def test_read_only_arrays_where_nothing_is_written() -> None:
    n = vector(symbol="n")
    f = run(with_stream, n, n, None)
    a, b = np.arange(4, dtype=np.float32), out()
    a.flags.writeable = False
    f(a, b, None)
    assert b.tolist() == [0, 1, 2, 3]
    b.flags.writeable = False
    with pytest.raises((BufferError, ValueError), match="b"):
        f(a, b, None)


def relation(a, b):
    b[0] = a.shape[0]


def test_relations_between_sizes() -> None:
    n = fe.sym_int(symbol="n")
    a = fe.make_fake_compact_tensor(fe.Float32, (n,))
    b = fe.make_fake_compact_tensor(fe.Float32, (2 * n + 1,))
    f = run(relation, a, b)
    x, y = np.zeros(16, np.float32), np.zeros(33, np.float32)
    f(x, y)
    assert y[0] == 16
    with pytest.raises(ValueError, match=r"expected n \* 2 \+ 1 = 33, but got 32"):
        f(x, y[:32])
    solved = run(relation, b, b)
    solved(y, y)
    with pytest.raises(ValueError, match=r"n \* 2 \+ 1"):
        solved(y[:32], y[:32])


def test_the_ir_of_an_optional(golden: Any) -> None:
    golden(
        "optional.ir",
        text(optional_bias, vector(symbol="n"), vector(symbol="k"), vector("float32", "m")),
    )


def größe(a):
    a[0] = a.shape[0]


def test_a_name_beyond_ascii() -> None:
    f = run(größe, vector(symbol="n"))
    a = out()
    f(a)
    assert a[0] == 4
    with pytest.raises(ValueError, match="größe"):
        f(np.zeros((2, 2), np.float32))


def definition(a):
    a[0] = 1.0


def frames(function: Any, *arguments: Any) -> list[tuple[str, str]]:
    """File and function of each frame of a refused call's traceback, without the test's own."""
    with pytest.raises((TypeError, ValueError)) as caught:
        function(*arguments)
    return [
        (Path(entry.filename).name, entry.name)
        for entry in traceback.extract_tb(caught.value.__traceback__)
        if entry.name != "frames"
    ]


def test_a_traceback_shows_the_definition() -> None:
    f = run(definition, vector(symbol="n")).prepare()
    for argument in (np.zeros((2, 2), np.float32), 3):
        found = frames(f, argument)
        assert len(found) <= 3
        assert ("test_parameters.py", "definition") in found
    stripped = fe.compile(definition, vector(symbol="n"), options=f"{CPU} --strip-paths")
    assert ("test_parameters.py", "definition") not in frames(stripped, 3)
    assert "test_parameters" not in stripped.inspect_llvm()
