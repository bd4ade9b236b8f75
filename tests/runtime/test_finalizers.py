"""Finalisers of objects: they run when the engine goes, and before its memory does."""

from __future__ import annotations

import ctypes
import gc
from typing import Any

import pytest

from ferrule.runtime import Engine
from ferrule.runtime.linking.finalizers import finalizers

from .conftest import COUNT, compile_text

TEXT = """
declare void @called(i32)
define i32 @f() {{ ret i32 5 }}
{functions}
@llvm.global_dtors = appending global [{count} x {{ i32, ptr, ptr }}] [{rows}]
"""
FUNCTION = "define internal void @end{0}() {section} {{ call void @called(i32 {0}) ret void }}\n"
ROW = "{{ i32, ptr, ptr }} {{ i32 65535, ptr @end{0}, ptr null }}"


def ending(count: int, section: str = "") -> Any:
    """An object with so many finalisers, each of which tells its number."""
    functions = "".join(FUNCTION.format(i, section=section) for i in range(count))
    rows = ", ".join(ROW.format(i) for i in range(count))
    return compile_text(TEXT.format(functions=functions, count=count, rows=rows), "f")


@pytest.fixture
def told() -> tuple[list[int], Any]:
    """The numbers that were told, and the function that they were told to."""
    numbers: list[int] = []
    return numbers, ctypes.CFUNCTYPE(None, ctypes.c_int)(numbers.append)


def loaded(code: Any, function: Any) -> Engine:
    return Engine.load(code, {"called": ctypes.cast(function, ctypes.c_void_p).value or 0})


@pytest.mark.parametrize("count", [1, 3])
def test_they_run_once_when_the_engine_goes(told: Any, count: int) -> None:
    numbers, function = told
    engine = loaded(ending(count), function)
    gc.collect()
    assert numbers == []
    del engine
    gc.collect()
    assert sorted(numbers) == list(range(count))


def test_they_wait_for_who_holds_the_engine(told: Any) -> None:
    numbers, function = told
    engine = loaded(ending(1), function)
    code = ctypes.CFUNCTYPE(ctypes.c_int)(engine.address("f"))
    assert (code(), numbers) == (5, [])
    holder = [engine]
    del engine
    gc.collect()
    assert numbers == []
    holder.clear()
    gc.collect()
    assert numbers == [0]


def test_one_in_a_section_that_is_not_known_is_left_out(told: Any) -> None:
    numbers, function = told
    engine = loaded(ending(1, 'section ".text.apart"'), function)
    del engine
    gc.collect()
    assert numbers == []


def test_an_object_without_any_has_none() -> None:
    code = compile_text(COUNT.format(name="count"), "count")
    assert finalizers(code.data, {"__tvm_ffi_count": 4096}) == ()
