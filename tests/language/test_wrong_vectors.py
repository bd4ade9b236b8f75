"""Programs with vectors and fragments that are wrong, and what they are told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from lowered import lower, vector

import ferrule as fe


def fragment_of_a_size(a):
    fe.make_fragment(a.shape[0], fe.Float32)


def fragment_of_nothing(a):
    fe.make_fragment(0, fe.Float32)


def fragment_of_much(a):
    fe.make_fragment((1000, 1000), fe.Float32)


def fragment_of_fp6(a):
    fe.make_fragment(4, fe.Float6E2M3FN)


def fragment_without_dtype(a):
    fe.make_fragment(4)


def fragments_of_much(a):
    for _ in fe.range_constexpr(5):
        fe.make_fragment(15000, fe.Float32)


def part_that_is_added_to(a):
    four(a)[None] += four(a).load()


def load_of_a_size(a):
    a.load()


def load_of_much(a):
    fe.make_tensor(a.iterator, (64, 64)).load()


def shapes_that_differ(a):
    four(a).load() + fe.make_tensor(a.iterator, (2,)).load()


def store_of_another_shape(a):
    four(a).store(fe.make_tensor(a.iterator, (2,)).load())


def store_of_another_dtype(a):
    fe.make_fragment(4, fe.Int32).store(four(a).load())


def store_of_a_number(a):
    four(a).store(1.0)


def index_out_of_range(a):
    four(a).load()[4]


def index_at_run_time(a):
    for i in range(4):
        a[i] = four(a).load()[i]


def vector_assigned_to(a):
    v = four(a).load()
    v[0] = 1.0


def vector_as_condition(a):
    if four(a).load() > 0.0:
        a[0] = 1.0


def vector_iterated(a):
    for x in four(a).load():
        a[0] = x


def vector_for_an_element(a):
    a[0] = four(a).load()


def vector_changes_shape(a):
    v = four(a).load()
    for _ in range(a.shape[0]):
        v = v[None] if False else fe.make_tensor(a.iterator, (2,)).load()
    a[0] = v[0]


def vector_with_a_whole_tensor(a):
    a[:] = four(a).load() + a[:]


def reduction_by_a_name(a):
    a[0] = four(a).load().reduce("add", 0.0, 0)


def copy_of_another_dtype(a):
    fe.autovec_copy(four(a), fe.make_fragment(4, fe.Int32))


def fragment_for_a_kernel(a):
    taking_kernel(fe.make_fragment(4, fe.Float32)).launch(grid=1, block=1)


def whole_fragment(a):
    own = fe.make_fragment(4, fe.Float32)
    own[:] = 1.0


def part_filled_by_assignment(a):
    assigning_kernel(a).launch(grid=1, block=1)


def four(a):
    return fe.make_tensor(a.iterator, (4,))


@fe.kernel
def taking_kernel(a):
    a[0] = 1.0


@fe.kernel
def assigning_kernel(a):
    a[None] = 1.0


WRONG = [
    (fragment_of_a_size, "whose sizes are known only at the call"),
    (fragment_of_nothing, "a fragment of shape 0 has 0 bytes"),
    (fragment_of_much, "has 4000000 bytes"),
    (fragment_of_fp6, "single elements of float6_e2m3fn have no bytes: four share three"),
    (fragment_without_dtype, "expected the arguments layout_or_shape, dtype"),
    (fragments_of_much, "have more than 262144 bytes altogether"),
    (part_that_is_added_to, "a vector is computed with the tensor"),
    (load_of_a_size, "a has the shape (n), which is known only at the call"),
    (load_of_much, "has 4096 elements"),
    (shapes_that_differ, "the shapes of two vectors differ: (4) and (2)"),
    (store_of_another_shape, "a vector of shape (2) is stored to a.iterator, whose shape is (4)"),
    (store_of_another_dtype, "a float32 is stored to fragment, whose elements are int32"),
    (store_of_a_number, "1.0 (float) is stored to all of a.iterator"),
    (index_out_of_range, "the index 4 is outside of a vector of float32, of shape (4)"),
    (index_at_run_time, "is indexed with a run-time int32"),
    (vector_assigned_to, "a vector of float32, of shape (4) has no elements to assign to"),
    (vector_as_condition, "a vector of bool, of shape (4) has no truth value"),
    (vector_iterated, "a vector of float32, of shape (4) cannot be iterated"),
    (vector_for_an_element, "a vector of shape (4) is stored to a[0], whose shape is ()"),
    (vector_changes_shape, "'v' is a vector of float32, of shape (4) before this loop"),
    (vector_with_a_whole_tensor, "a vector is computed with a whole-tensor expression of float32"),
    (reduction_by_a_name, "reduce got 'add' (str)"),
    (copy_of_another_dtype, "autovec_copy copies float32 to fragment, whose elements are int32"),
    (fragment_for_a_kernel, "a kernel takes a fragment of the host function for 'a'"),
    (whole_fragment, "fragment is in registers"),
    (part_filled_by_assignment, "a part of a is assigned to in a kernel"),
]


@pytest.mark.parametrize(("function", "message"), WRONG, ids=lambda x: getattr(x, "__name__", ""))
def test_wrong_programs(function: Callable[..., Any], message: str) -> None:
    with pytest.raises(fe.CompileError) as caught:
        lower(function, vector())
    diagnostic = caught.value.diagnostic
    assert message in diagnostic.message
    assert diagnostic.span is not None
    assert diagnostic.hint or diagnostic.expected


def test_host_code_does_not_reach_the_memory_of_a_gpu() -> None:
    def host(a):
        a[0, None].load()

    rows = fe.make_fake_compact_tensor(fe.Float32, (fe.sym_int(), 4), stride_order=(1, 0))
    with pytest.raises(fe.CompileError, match="is on a GPU"):
        fe.compile(host, rows, options="--target cuda --gpu-arch sm_90a")


def test_outside_of_a_compiled_function_they_say_so() -> None:
    for call in (lambda: fe.make_fragment(4, fe.Float32), lambda: fe.where(True, 1, 2)):
        with pytest.raises(RuntimeError, match="only in a function that is compiled"):
            call()
