"""`fe.jax_call`: outputs, aliases, numbers, dtypes, layouts, and what is refused."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
from jax_kernels import compiled, doubled, function, scaled, vector

import ferrule as fe
from ferrule.compiler.operators.jax.calls import Bits

jax = pytest.importorskip("jax", reason="JAX is not installed")
jnp = jax.numpy


def arange(size: int) -> Any:
    return jnp.arange(size, dtype="float32")


def struct(*shape: int, dtype: str = "float32") -> Any:
    return jax.ShapeDtypeStruct(shape, dtype)


def lines(text: object) -> str:
    return " ".join(str(text).split())


# ---- outputs ----


def test_what_is_written_comes_back() -> None:
    call = fe.jax_call(function("scaled"))
    assert call(arange(3)).tolist() == [0.0, 2.0, 4.0]
    assert call(arange(3), 3).tolist() == [0.0, 3.0, 6.0]
    assert call(x=np.arange(3, dtype=np.float32), factor=np.int8(-1)).tolist() == [0.0, -1.0, -2.0]
    assert jax.jit(lambda x: call(x + 1, 0.5))(arange(2)).tolist() == [0.5, 1.0]


@pytest.mark.parametrize(
    "out",
    [
        struct(3),
        [struct(3)],
        ["y"],
        {"y": None},
        {"y": struct(3)},
        lambda x: struct(*x.shape),
        lambda x: {"y": x},
        {"y": lambda x: x},
    ],
)
def test_out_says_sizes_in_several_ways(out: Any) -> None:
    call = fe.jax_call(function("doubled"), out)
    assert call(arange(3)).tolist() == [0.0, 2.0, 4.0]


@pytest.mark.parametrize("sizes", [(1, 2), (9, 9), (3, 3), (4, 2)])
def test_bounds_and_requirements_are_known_while_tracing(sizes: tuple[int, int]) -> None:
    from operator_kernels import bounded

    call = fe.jax_call(bounded())
    assert call(arange(4), arange(3) + 1.0, 2).tolist() == [0.0, 2.0, 4.0, 6.0]
    x, w = (arange(size) for size in sizes)
    with pytest.raises(ValueError, match=r"Out of bound x.shape\[0\]|Invalid sizes"):
        jax.eval_shape(lambda x, w: call(x, w, 2), x, w)


def test_a_size_that_no_array_tells_is_of_out() -> None:
    first = function("first")
    assert fe.jax_call(first, struct(2))(arange(3)).tolist() == [0.0, 1.0]
    with pytest.raises(ValueError, match=r"no array tells the size n1 of y, which first makes"):
        fe.jax_call(first)(arange(3))


def test_sizes_that_only_an_output_tells() -> None:
    from jax_kernels import first

    n, m = fe.sym_int(), fe.sym_int()
    half, other, whole = (fe.make_fake_compact_tensor(fe.Float32, (d,)) for d in (n // 2, m, n))

    @fe.jit
    def joined(h: fe.Tensor, o: fe.Tensor, y: fe.Tensor, z: fe.Tensor):
        for i in range(o.shape[0]):
            z[i] = o[i] + h[0]
        for i in range(y.shape[0]):
            y[i] = 1.0

    call = fe.jax_call(compiled(joined, half, other, whole, other), {"y": struct(5), "z": None})
    y, z = call(arange(2), arange(3))
    assert (y.shape, z.tolist()) == ((5,), [0.0, 1.0, 2.0])
    with pytest.raises((jax.errors.JaxRuntimeError, ValueError), match=r"h.shape\[0\]"):
        jax.block_until_ready(call(arange(3), arange(3)))
    with pytest.raises(ValueError, match=r"out says that y is float32\[5\]"):
        fe.jax_call(compiled(first, whole, whole), struct(5))(arange(3))


def test_what_one_candidate_writes_alone_is_no_output() -> None:
    from ferrule import specs
    from ferrule.compiler.operators.jax.plans import plan_of

    def candidate(dtype: str, *, read_only: bool) -> specs.Signature:
        y = specs.Tensor("y", (3,), dtype, read_only=read_only)
        return specs.Signature("f", (specs.Tensor("x", (3,), dtype, read_only=True), y))

    both = [candidate("float32", read_only=False), candidate("int32", read_only=True)]
    signature = specs.Overloads("f", tuple(both))
    with pytest.raises(ValueError, match=r"does not write to y, as other candidates do"):
        plan_of(signature)
    assert [each.name for each in plan_of(signature, []).outputs] == ["y"]


def test_what_out_leaves_out_is_written_where_it_is() -> None:
    call = fe.jax_call(function("both"), ["y"])
    x, z = arange(3), jnp.ones(3)
    y, sums = call(x, z)
    assert (y.tolist(), sums.tolist()) == ([1.0, 2.0, 3.0], [1.0, 2.0, 3.0])
    assert z.tolist() == [1.0, 1.0, 1.0]
    by_order = fe.jax_call(function("both"), struct(3))
    assert by_order(x, z)[1].tolist() == [1.0, 2.0, 3.0]


def test_an_array_that_is_written_is_copied_only_if_it_is_used_again() -> None:
    call = fe.jax_call(function("added"), {})
    x = arange(3)
    assert call(x, 2).tolist() == [2.0, 3.0, 4.0]
    assert x.tolist() == [0.0, 1.0, 2.0]
    twice = jax.jit(lambda x: call(call(x, 1), 10) + x)
    assert twice(x).tolist() == [11.0, 13.0, 15.0]
    donated = jax.jit(lambda x: call(x, 1), donate_argnums=0)
    address = x.unsafe_buffer_pointer()
    result = donated(x)
    assert result.unsafe_buffer_pointer() == address and x.is_deleted()
    assert call(jnp.zeros(0), 1).shape == (0,)


def test_results_of_the_function_come_first() -> None:
    call = fe.jax_call(function("returned"))
    y, more, many = call(arange(3), 4)
    assert (y.tolist(), int(more), bool(many)) == ([4.0, 5.0, 6.0], 5, True)
    assert (y.dtype, more.dtype, many.dtype) == ("float32", "int32", "bool")
    # Many calls, each of which makes a tensor: all are released.
    total = jax.jit(lambda x: jax.lax.fori_loop(0, 1000, lambda _, x: call(x, 1)[0], x))
    assert total(arange(3)).tolist() == [1000.0, 1001.0, 1002.0]


def test_a_result_of_another_size_than_out_says_is_refused() -> None:
    call = fe.jax_call(function("returned"), {"result0": struct(4)})
    with pytest.raises(ValueError, match=r"out says that result0 is float32\[4\], but .* float32"):
        call(arange(3), 4)


def test_a_call_without_outputs_has_side_effects() -> None:
    with pytest.raises(ValueError, match=r"writes and returns nothing, .* has_side_effect=True"):
        fe.jax_call(function("checked"))
    call = fe.jax_call(function("checked"), has_side_effect=True)
    assert call(arange(3), True) is None
    with pytest.raises(jax.errors.JaxRuntimeError, match="ValueError: the first one is negative"):
        call(-jnp.ones(3), True)
        jax.effects_barrier()
    assert call(-jnp.ones(3), False) is None


# ---- arguments ----


def test_optional_arguments_are_static() -> None:
    call = fe.jax_call(function("chosen"))
    x = arange(3)
    assert call(x, None, None).tolist() == [0.0, 1.0, 2.0]
    assert call(x, x, None).tolist() == [0.0, 2.0, 4.0]
    assert call(x, None, 3.0).tolist() == [0.0, 3.0, 6.0]
    assert jax.jit(lambda x: call(x, x, 3.0))(x).tolist() == [0.0, 6.0, 12.0]


@pytest.mark.parametrize("name", ["to_columns", "to_rows"])
@pytest.mark.parametrize("shape", [(2, 3), (1, 4), (0, 3)])
def test_layouts_are_the_signatures(name: str, shape: tuple[int, int]) -> None:
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    call = fe.jax_call(function(name))
    expected = x * 10 + np.arange(shape[0], dtype=np.float32)[:, None]
    for run in (call, jax.jit(call)):
        np.testing.assert_array_equal(run(x), expected)


def test_padded_rows_are_dense() -> None:
    from jax_kernels import numbered

    pitch = fe.sym_int64()
    rows = fe.make_fake_tensor(fe.Float32, (fe.sym_int(), 3), (pitch, 1))
    x = np.ones((2, 3), np.float32)
    call = fe.jax_call(compiled(numbered, rows, rows), struct(2, 3))
    np.testing.assert_array_equal(call(x), [[10] * 3, [11] * 3])


_DTYPES = "bool int8 uint8 int16 uint16 int32 uint32 float16 bfloat16 float32".split()


@pytest.mark.parametrize("name", _DTYPES)
def test_dtypes(name: str) -> None:
    from ferrule import specs

    @fe.jit
    def copied(x: fe.Tensor, y: fe.Tensor):
        y[:] = x[:]

    v = vector(specs.as_dtype(name))
    x = jnp.asarray([0, 1, 1], dtype=name)
    y = fe.jax_call(compiled(copied, v, v))(x)
    assert y.dtype == x.dtype and y.tolist() == x.tolist()


def test_a_call_chooses_among_candidates() -> None:
    call = fe.jax_call(function("either"))
    for dtype in ("float32", "int32"):
        y = call(jnp.arange(3, dtype=dtype))
        assert y.dtype == dtype and y.tolist() == [0, 2, 4]
    with pytest.raises(ValueError, match=r"expected dtype=float32 or int32, but got dtype=int16"):
        call(jnp.arange(3, dtype="int16"))


# ---- what is refused, before anything runs ----


@pytest.mark.parametrize(
    ("run", "kind", "message"),
    [
        (lambda c: c(arange(3), by="x"), TypeError, "unexpected keyword argument 'by'"),
        (lambda c: c(), TypeError, "missing a required argument: 'x', when calling `scaled(x"),
        (lambda c: c([1.0]), TypeError, "an array of JAX or NumPy, but got list"),
        (lambda c: c(arange(3), "a"), TypeError, "factor must be a float, but got 'a'"),
        (lambda c: c(jnp.ones((2, 2))), ValueError, "expected ndim=1, but got ndim=2"),
        (lambda c: c(jnp.arange(3)), ValueError, "expected dtype=float32, but got dtype=int32"),
        (lambda c: jax.jit(c)(arange(3), 2.0), TypeError, "through static_argnums of jax.jit"),
        (lambda c: c(jnp.ones(3, "complex64")), ValueError, "but got dtype=complex64"),
        (lambda c: c(jax.random.key(0)), TypeError, "but got an array of key<"),
    ],
)
def test_wrong_arguments(run: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind) as caught:
        jax.eval_shape(lambda: run(fe.jax_call(function("scaled"))))
    assert message in lines(caught.value)


def test_sizes_that_differ_are_the_calls_error() -> None:
    call = fe.jax_call(function("both"), ["y"])
    with pytest.raises(ValueError) as caught:
        call(arange(3), jnp.ones(4))
    with pytest.raises(ValueError) as said:
        y = np.ones(3, np.float32)
        function("both")(np.ones(3, np.float32), y, np.ones(4, np.float32))
    assert str(caught.value) == str(said.value)


def test_numbers_out_of_range() -> None:
    call = fe.jax_call(function("added"), {})
    for number in (1 << 31, 1 << 70):
        with pytest.raises((ValueError, OverflowError), match=r"range"):
            call(arange(3), number)


@pytest.mark.parametrize(
    ("out", "kind", "message"),
    [
        (["z"], ValueError, "out has 'z', which doubled(x: "),
        ({"x": None}, ValueError, "its outputs are y"),
        ([struct(3), struct(3)], ValueError, "out has 2 entries, but doubled("),
        ("y", TypeError, "out must be a jax.ShapeDtypeStruct"),
        (3, TypeError, "but got 3"),
        ([3], TypeError, "but got 3, for y"),
        (struct(4), ValueError, "out says that y is float32[4], but doubled("),
        (struct(3, dtype="int32"), ValueError, "y is int32[3], but"),
        (struct(3, 1), ValueError, "y is float32[3,1], but"),
        (lambda x: 3, TypeError, "but got 3"),
    ],
)
def test_wrong_out(out: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind) as caught:
        jax.eval_shape(lambda x: fe.jax_call(function("doubled"), out)(x), arange(3))
    assert message in lines(caught.value)


def test_what_no_program_of_jax_has() -> None:
    from ferrule import specs

    with pytest.raises(TypeError, match=r"jax_call takes a compiled function, but got .*doubled"):
        fe.jax_call(doubled)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"vmap_method must be one of 'sequential'"):
        fe.jax_call(function("doubled"), vmap_method="always")

    @fe.jit
    def length(x: fe.Tensor, s: fe.Shape, y: fe.Tensor):
        y[0] = x[0] + s[0]

    v = vector()
    with pytest.raises(ValueError, match=r"s: Shape.* of length is no array and no number"):
        fe.jax_call(compiled(length, v, (1,), v))
    optional = specs.Optional("y", specs.Tensor("y", (3,), "float32"))
    signature = specs.Signature("f", (optional,))
    from ferrule.compiler.operators.jax.plans import plan_of

    with pytest.raises(ValueError, match=r"always has the same outputs"):
        plan_of(signature)
    small = specs.Signature("f", (specs.Tensor("y", (4,), "int4"),))
    with pytest.raises(ValueError, match=r"use one with elements of whole bytes"):
        plan_of(small)
    elsewhere = specs.Signature("f", (specs.Tensor("y", (4,), "int8", device="metal"),))
    with pytest.raises(ValueError, match=r"has tensors on metal"):
        plan_of(elsewhere)


def test_names_in_xla() -> None:
    first, other = function("doubled"), function("scaled")
    call = fe.jax_call(first, name="tests.named")
    assert call(arange(2)).tolist() == [0.0, 2.0]
    assert fe.jax_call(first, name="tests.named").target == call.target == "tests.named"
    for given in (other, function("both")):
        with pytest.raises(ValueError, match=r"XLA has a handler 'tests.named' of doubled\("):
            fe.jax_call(given, name="tests.named")
    with pytest.raises(ValueError, match=r"the name of a handler has ASCII letters"):
        fe.jax_call(first, name="a b")
    with pytest.raises(TypeError, match=r"name must be a text"):
        fe.jax_call(first, name=3)  # type: ignore[arg-type]
    assert fe.jax_call(other).target == fe.jax_call(other).target != fe.jax_call(first).target


# ---- what the call alone tells ----


def test_errors_of_the_function_are_jaxs() -> None:
    call = jax.jit(fe.jax_call(function("refused")))
    assert call(jnp.ones(2)).shape == (2,)
    # JAX has a ValueError instead where its dispatch in C++ runs the program.
    with pytest.raises((jax.errors.JaxRuntimeError, ValueError)) as caught:
        call(-jnp.ones(2)).block_until_ready()
    assert "INTERNAL: RuntimeError: the first one is negative" in str(caught.value)


def test_messages_are_whole() -> None:
    @fe.jit
    def loud(x: fe.Tensor, y: fe.Tensor):
        if x[0] < 0.0:
            fe.raise_error("ValueError", "long " * 3000)
        y[0] = x[0]

    v = vector()
    with pytest.raises(jax.errors.JaxRuntimeError) as caught:
        fe.jax_call(compiled(loud, v, v))(-jnp.ones(2)).block_until_ready()
    assert f"INVALID_ARGUMENT: ValueError: {'long ' * 3000}" in str(caught.value)


def test_arrays_of_64_bits_need_jaxs_word() -> None:
    v = vector(fe.Float64)
    call = fe.jax_call(compiled(doubled, v, v))
    with pytest.raises(ValueError, match=r"jax.config.update\('jax_enable_x64', True\)"):
        call(np.arange(3.0))
    jax.config.update("jax_enable_x64", True)
    try:
        assert call(np.arange(3.0)).dtype == "float64"
    finally:
        jax.config.update("jax_enable_x64", False)


def test_the_call_describes_itself() -> None:
    call = fe.jax_call(function("scaled"))
    import inspect

    assert str(inspect.signature(call)) == "(x, factor=2.0)"
    assert repr(call).startswith("<jax_call of scaled(x: Tensor([n0], float32)")
    assert call.__name__ == "scaled"


@pytest.mark.parametrize("name", ["int4", "uint2"])
def test_dtypes_that_no_tensor_has_are_refused_by_name(name: str) -> None:
    if not hasattr(jnp, name):
        pytest.skip(f"this JAX has no {name}")
    call = fe.jax_call(function("scaled"))
    with pytest.raises(TypeError, match=rf"x is .*, but got an array of {name}, which has no"):
        call(jnp.ones(3, name), 2.0)
    with pytest.raises(TypeError, match="but got an array of key<"):
        jax.jit(lambda x: call(x, 2.0))(jax.random.key(0))


def test_a_call_that_is_compiled_ahead_of_time() -> None:
    call = fe.jax_call(function("scaled"))
    run = jax.jit(lambda x: call(x, 3.0)).lower(jnp.arange(3.0)).compile()
    for size in (3, 3):
        assert run(jnp.arange(float(size))).tolist() == [0, 3, 6]
    assert jax.jit(lambda x: call(x, 3.0))(jnp.zeros(0)).shape == (0,)


def test_a_program_keeps_its_function() -> None:
    """XLA has the handler for ever, so the code must stay, too."""

    def program() -> Any:
        x = vector()
        call = fe.jax_call(compiled(scaled, x, x, 2.0))
        return jax.jit(lambda x: call(x, 4.0))

    run = program()
    gc.collect()
    assert run(jnp.ones(2)).tolist() == [4, 4]


def test_attributes_are_told_apart_by_their_bits() -> None:
    call, x = fe.jax_call(function("scaled")), jnp.ones(1)
    both = jax.jit(lambda x: (1 / call(x, 0.0), 1 / call(x, -0.0)))
    assert [each.tolist() for each in both(x)] == [[np.inf], [-np.inf]]
    assert [(1 / call(x, zero)).tolist() for zero in (0.0, -0.0)] == [[np.inf], [-np.inf]]
    nan = Bits(np.nan)
    assert nan == Bits(np.nan) and hash(nan) == hash(Bits(np.nan)) and nan != Bits(1.0)
    assert np.isnan(call(x, float("nan"))).all()


@pytest.mark.parametrize("text", ["3.0", "", "none", "None ", "Nope"])
def test_only_the_text_none_stands_for_what_is_absent(text: str) -> None:
    call, x = fe.jax_call(function("chosen")), jnp.ones(3)
    ffi = jax.ffi.ffi_call(call.target, jax.ShapeDtypeStruct((3,), "float32"))
    absent = {"b": "None", "k": "None"}
    assert ffi(x, **absent).tolist() == call(x, None, None).tolist()
    with pytest.raises(Exception, match="expected the attribute k to be a float or None"):
        ffi(x, **{**absent, "k": text})


def test_integers_that_jax_would_cut_are_refused() -> None:
    numbers = fe.make_fake_compact_tensor(fe.Int32, (fe.sym_int(),))
    call = fe.jax_call(compiled(copy_numbers, numbers, numbers))
    assert call(np.array([3, -(1 << 31)])).tolist() == [3, -(1 << 31)]
    for wrong in (1 << 40, 1 << 31, -(1 << 31) - 1):
        with pytest.raises(ValueError, match=f"x has {wrong}, but JAX makes an array of int32"):
            call(np.array([1, wrong]))


@fe.jit
def copy_numbers(x: fe.Tensor, y: fe.Tensor):
    for i in range(x.shape[0]):
        y[i] = x[i]


def test_an_output_of_another_rank_or_of_a_negative_size() -> None:
    n, q = fe.sym_int(symbol="n"), fe.sym_int(symbol="q")
    one, two, three = (fe.make_fake_compact_tensor(fe.Int32, (size,)) for size in (n, q, 3 - n))
    with pytest.raises(ValueError, match=r"y is int32\[3,3\], but .* makes it with 1 dims"):
        shape = jax.ShapeDtypeStruct((3, 3), "int32")
        fe.jax_call(compiled(copy_numbers, one, two), out={"y": shape})(jnp.arange(3))
    shrunk = fe.jax_call(compiled(copy_numbers, one, three))
    with pytest.raises(ValueError, match=r"y, which .* would have the shape \(-2,\)"):
        shrunk(jnp.arange(5))
