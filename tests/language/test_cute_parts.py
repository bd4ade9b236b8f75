"""Smaller things that programs for CuTe DSL do: sizes that a kernel is given, missing names,
swizzled tensors of other elements, `empty_like`, and functions of tuples outside."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ferrule as fe
import ferrule.cutlass as cutlass
from ferrule import arch

CPU = "--target cpu"


# ---- sizes that a kernel is given ----


@fe.kernel
def marks(a: fe.Tensor, shape: fe.Shape):
    places = fe.make_identity_tensor(shape)
    rows = fe.make_layout(shape, stride=(shape[1], 1))
    t = arch.thread_idx()[0]
    if fe.elem_less(places[t, 0], shape):
        a[t, 0] = rows((t, 0)) + 1


@fe.jit
def of_two(a: fe.Tensor, b: fe.Tensor, shape: fe.Shape):
    marks(a, shape).launch(grid=1, block=8)
    marks(b, b.shape).launch(grid=1, block=8)
    marks(b, (2, shape[1])).launch(grid=1, block=8)


def test_a_kernel_makes_layouts_of_its_shape_parameters() -> None:
    """The two tensors are of one type, so only the sizes tell the kernels apart."""
    rows, columns = fe.sym_int(), fe.sym_int()
    fakes = [
        fe.make_fake_compact_tensor(fe.Int32, (rows, columns), stride_order=(1, 0)) for _ in "ab"
    ]
    compiled = fe.compile(of_two, *fakes, (fe.sym_int(), fe.sym_int()), options=CPU)
    a, b = np.zeros((6, 3), np.int32), np.zeros((6, 3), np.int32)
    compiled(a, b, (4, 5))
    assert a[:, 0].tolist() == [1, 6, 11, 16, 0, 0]
    assert b[:, 0].tolist() == [1, 6, 7, 10, 13, 16]


@fe.kernel
def without_annotation(a: fe.Tensor, shape):
    a[0, 0] = fe.make_identity_tensor(shape)[0, 0][0]


@fe.jit
def gives_numbers(a: fe.Tensor, shape: fe.Shape):
    without_annotation(a, shape).launch(grid=1, block=1)


def test_numbers_that_a_kernel_is_given_are_no_sizes() -> None:
    fake = fe.make_fake_compact_tensor(fe.Int32, (4, 4), stride_order=(1, 0))
    with pytest.raises(fe.CompileError, match=r"annotate the kernel's parameter, shape: fe\.Shape"):
        fe.compile(gives_numbers, fake, (fe.sym_int(), fe.sym_int()), options=CPU)


# ---- names that are missing ----


@fe.kernel
def loops(a: fe.Tensor):
    cutlass.while_generate  # noqa: B018


@fe.kernel
def types(a: fe.Tensor):
    fe.TypedTensor(a)


@fe.kernel
def misspells(a: fe.Tensor):
    a[0] = cutlass.Flaot32(1)


def error_of(kernel: Any) -> str:
    @fe.jit
    def host(a: fe.Tensor):
        kernel(a).launch(grid=1, block=1)

    with pytest.raises(fe.CompileError) as caught:
        fe.compile(host, np.zeros(1, np.float32), options=CPU)
    return str(caught.value)


@pytest.mark.parametrize(
    ("module", "name", "kernel", "wanted"),
    [
        (cutlass, "while_generate", loops, "cutlass.while_generate is not in ferrule; instead: a"),
        (fe, "TypedTensor", types, "cutlass.cute.TypedTensor is not in ferrule, or not yet"),
        (cutlass, "Flaot32", misspells, "what is); did you mean Float32?"),
    ],
)
def test_missing_names_are_the_same_error_inside(
    module: Any, name: str, kernel: Any, wanted: str
) -> None:
    with pytest.raises(AttributeError) as outside:
        getattr(module, name)
    assert wanted in str(outside.value)
    inside = error_of(kernel)
    assert str(outside.value) in inside
    assert "hint" not in inside


def test_names_that_nobody_has_are_plain_errors() -> None:
    with pytest.raises(AttributeError, match="module 'ferrule' has no attribute 'nothing'"):
        _ = fe.nothing  # type: ignore[attr-defined]
    assert not hasattr(fe, "_nothing")


# ---- swizzled tensors of other elements ----


@fe.kernel
def recasts(words: fe.Tensor, bytes_: fe.Tensor, of_pointer: fe.Constexpr):
    plain = fe.make_layout((8, 32), stride=(32, 1))
    memory = arch.alloc_smem(fe.Float16, 256, alignment=1024)
    if of_pointer:
        s = fe.make_tensor(fe.recast_ptr(memory, fe.make_swizzle(2, 4, 3)), plain)
    else:
        s = fe.make_tensor(memory, fe.make_composed_layout(fe.make_swizzle(2, 3, 3), 0, plain))
    for i in range(8):
        for j in range(32):
            s[i, j] = fe.Float16(i * 32 + j)
    wide, narrow = fe.recast_tensor(s, fe.Int32), s.recast(fe.Uint8)
    for i in range(8):
        for j in range(16):
            words[i, j] = wide[i, j]
        for j in range(64):
            bytes_[i, j] = narrow[i, j]


@pytest.mark.parametrize("of_pointer", [False, True])
def test_swizzled_tensors_are_recast(of_pointer: bool) -> None:
    @fe.jit
    def host(words: fe.Tensor, bytes_: fe.Tensor):
        recasts(words, bytes_, of_pointer).launch(grid=1, block=1)

    words, bytes_ = np.zeros((8, 16), np.int32), np.zeros((8, 64), np.uint8)
    fe.compile(host, words, bytes_, options=CPU)(words, bytes_)
    wanted = np.arange(256).astype(np.float16).reshape(8, 32)
    np.testing.assert_array_equal(words, wanted.view(np.int32))
    np.testing.assert_array_equal(bytes_, wanted.view(np.uint8))


@fe.kernel
def recasts_a_part(a: fe.Tensor):
    plain = fe.make_layout((8, 32), stride=(32, 1))
    memory = arch.alloc_smem(fe.Float16, 256, alignment=1024)
    s = fe.make_tensor(memory, fe.make_composed_layout(fe.make_swizzle(2, 3, 3), 0, plain))
    a[0] = fe.recast_tensor(s[arch.thread_idx()[0], None], fe.Float32)[0]


@fe.kernel
def recasts_parts_of_runs(a: fe.Tensor):
    plain = fe.make_layout((8, 32), stride=(32, 1))
    memory = arch.alloc_smem(fe.Float16, 256, alignment=1024)
    s = fe.make_tensor(memory, fe.make_composed_layout(fe.make_swizzle(2, 0, 3), 0, plain))
    a[0] = fe.recast_tensor(s, fe.Float32)[0, 0]


def test_what_of_swizzled_tensors_is_not_recast() -> None:
    assert "recast the whole tensor, and take the part of that" in error_of(recasts_a_part)
    assert "parts of elements of 32 bits" in error_of(recasts_parts_of_runs)


# ---- empty_like, retile, tuples outside ----


@fe.kernel
def adds_one(a: fe.Tensor, out: fe.Tensor):
    empty = fe.empty_like(a)
    out.store(empty + fe.empty_like(empty, fe.Float32) + 1.0)


def test_empty_like_in_a_kernel_is_a_vector() -> None:
    @fe.jit
    def host(a: fe.Tensor, out: fe.Tensor):
        adds_one(a, out).launch(grid=1, block=1)

    a, out = np.full((2, 2), 5, np.float32), np.zeros((2, 2), np.float32)
    fe.compile(host, a, out, options=CPU)(a, out)
    assert out.tolist() == [[1, 1], [1, 1]]


@fe.kernel
def retiles(a: fe.Tensor):
    atom = fe.make_copy_atom(fe.nvgpu.CopyUniversalOp(), fe.Float32)
    tiled = fe.make_tiled_copy_tv(atom, fe.make_layout((4, 8)), fe.make_layout((2, 2)))
    tiled.get_slice(0).retile(fe.make_fragment((2, 2), fe.Float32))


def test_retile_names_itself() -> None:
    found = error_of(retiles)
    assert "retile: the fragment (2,2):(1,2) has 2 modes, but the tile of the copy has 2" in found
    assert "give one of 3 modes" in found
    assert "zipped_divide" not in found


def test_functions_of_tuples_outside() -> None:
    n = fe.sym_int(symbol="n")
    assert fe.ceil_div((7, 5), (2, 3)) == (4, 2)
    assert fe.ceil_div((7, (5, 9)), (2, (3, 4))) == (4, (2, 3))
    assert fe.ceil_div((7, 5, 4), 2) == (4, 5, 4)
    assert str(fe.ceil_div((n, 5), (4, 3))) == str((fe.ceil_div(n, 4), 2))
    with pytest.raises(ValueError, match="more modes"):
        fe.ceil_div((7,), (2, 3))
    assert fe.elem_less((1, (2, 3)), (2, (3, 4)))
    assert not fe.elem_less((1, (2, 4)), (2, (3, 4)))
    with pytest.raises(ValueError, match="one profile"):
        fe.elem_less((1, 2), (1, 2, 3))
