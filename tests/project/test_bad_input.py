"""What is given wrongly to public functions is refused in ferrule's own words.

Of each mistake: the class of the error, and that the text says what was wanted.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest

import ferrule as fe
from ferrule import specs
from ferrule.compiler.conventions import CFunction, HostCode
from ferrule.runtime import load_module, use_allocator

N = specs.sym_int(symbol="n")
X = specs.Tensor("x", (N,), "float32")
ARRAY = np.array([1, 2])
LAYOUT = fe.make_layout((4, 6))


def compile_nothing(**options: Any) -> None:
    @fe.jit
    def nothing(k: fe.Int32):
        pass

    fe.compile(nothing, fe.Int32, options=fe.Options(**options))


def calling(k: fe.Int32):
    fe.call("nobody", k, result=[fe.Int32])


Mistake = tuple[Callable[[], object], type[Exception], str]

IN_SPECS: list[Mistake] = [
    (lambda: fe.Int8(ARRAY), TypeError, r"int8 takes a number, but got an array"),
    (lambda: fe.Boolean(ARRAY), TypeError, r"bool takes a number, but got an array"),
    (lambda: fe.Int8(int), TypeError, r"int8 takes an integer, but got <class 'int'>"),
    (lambda: fe.Float32(np.array("a")), TypeError, r"float32 takes a number, but got array\('a'"),
    (lambda: fe.Numeric(1), TypeError, r"the base of all dtypes: call one of them"),
    (lambda: specs.Scalar("k", "int32", ARRAY), TypeError, r"takes a number, but got an array"),
    (lambda: specs.Optional("o", None), TypeError, r"o: what stands inside it must be a spec"),
    (lambda: specs.Array("a", "int32"), TypeError, r"must be a spec, .* but got 'int32'"),
    (lambda: specs.Tuple("t", 3), TypeError, r"t: .* must be in a tuple, but got 3"),
    (lambda: specs.Union("u", "ab"), TypeError, r"u: .* must be in a tuple, but got 'ab'"),
    (lambda: specs.Overloads("f", "g"), TypeError, r"a candidate must be a Signature, but got 'g'"),
    (lambda: specs.Overloads("f", 3), TypeError, r"candidates must be in a list, but got 3"),
    (lambda: specs.Signature("f", [X], "int"), TypeError, r"result must be a spec or None"),
    (lambda: specs.Signature("f" * 600, [X]), ValueError, r"600 characters, more than 512"),
    (lambda: specs.String("f" * 600), ValueError, r"600 characters, more than 512"),
    (lambda: list(specs.Signature("f", [X])), TypeError, r"not iterable"),
    (lambda: specs.Tensor("x", (N,), ARRAY), TypeError, r"expected a dtype such as Float32"),
    (lambda: specs.Shape("s", (N,), ARRAY), ValueError, r"kind must be one of"),
    (lambda: fe.make_fake_tensor(ARRAY, (N,), (1,)), TypeError, r"expected a dtype such as"),
    (lambda: specs.compact_strides(None, (0,)), TypeError, r"shape must be a tuple"),
    (lambda: specs.compact_strides((N, 2), (1, "a")), TypeError, r"must be a tuple of ints, but"),
    (
        lambda: fe.make_fake_compact_tensor("int8", (N, 2), stride_order=1),
        TypeError,
        r"stride_order must be a tuple of ints, but got 1",
    ),
    (
        lambda: fe.make_fake_stream(
            use_tvm_ffi_env_stream=True,
            device="cuda",
            device_id="0",
        ),
        ValueError,
        r"a device index must be an int of at least 0, but got '0'",
    ),
    (lambda: specs.divisibility_of(None), TypeError, r"a size is an int or a symbolic int"),
]

IN_LAYOUTS: list[Mistake] = [
    (lambda: fe.coalesce(None), fe.LayoutError, r"expected one, but got None; write make_layout"),
    (lambda: fe.composition((4, 6), 2), fe.LayoutError, r"write make_layout\(\(4,6\)\)"),
    (lambda: fe.filter_zeros(ARRAY), fe.LayoutError, r"expected one, but got array"),
    (lambda: fe.crd2idx((1, 2), None), fe.LayoutError, r"expected one, but got None"),
    (lambda: fe.slice_(None, (1, None)), fe.LayoutError, r"expected one, but got None"),
    (lambda: fe.logical_divide(LAYOUT, 0), fe.LayoutError, r"has no elements"),
    (lambda: LAYOUT[1.5], TypeError, r"given by its position, an int, not by 1.5"),
    (lambda: fe.size(LAYOUT, mode=1.5), fe.LayoutError, r"expected a list of positions"),
    (lambda: fe.select(LAYOUT, None), fe.LayoutError, r"expected a list of positions"),
    (lambda: fe.group_modes(LAYOUT, "a", 2), fe.LayoutError, r"expected an int, but got 'a'"),
    (lambda: fe.prepend(LAYOUT, LAYOUT, "a"), fe.LayoutError, r"expected an int, but got 'a'"),
    (lambda: fe.append(LAYOUT, LAYOUT, []), fe.LayoutError, r"expected an int, but got \[\]"),
    (lambda: fe.recast_layout(1.5, 8, LAYOUT), fe.LayoutError, r"bits must be ints, but got 1.5"),
]

IN_FILES: list[Mistake] = [
    (lambda: load_module(None), TypeError, r"load_module: expected the path of a file"),
    (lambda: fe.export_library(3, []), TypeError, r"export_library: expected the path of a file"),
    (lambda: fe.export_library("a.so", 3), TypeError, r"must be a list, or a dict by name"),
    (lambda: fe.export_library([], "a.so"), TypeError, r"must be a list, .*, but got 'a.so'"),
    (lambda: fe.Module([], imports=3), TypeError, r"imports must be a list of modules"),
    (
        lambda: fe.from_dlpack(np.zeros((2, 2))).mark_compact_shape_dynamic(0, 1),
        TypeError,
        r"stride_order must be a tuple of ints, but got 1",
    ),
]

IN_CODE: list[Mistake] = [
    # A mock has every attribute: ctypes would ask it for its address for ever.
    (lambda: HostCode.from_address(MagicMock()), TypeError, r"expected the address of a C funct"),
    (lambda: CFunction(MagicMock(spec=[])), TypeError, r"expected"),
    (lambda: use_allocator(1 << 64, 1), TypeError, r"must be a function or the address of one"),
    (lambda: fe.Array[[]], TypeError, r"is no kind of element"),
    (
        lambda: fe.compile(calling, 1, options="--target cpu"),
        fe.CompileError,
        r"the result of a call is \[Int32\] \(list\)",
    ),
    (lambda: compile_nothing(target=ARRAY), fe.CompileError, r"the option target is"),
    (lambda: compile_nothing(opt_level=2.0), fe.CompileError, r"opt_level must be 0, 1, 2 or 3"),
    (lambda: compile_nothing(strip_paths=1), fe.CompileError, r"strip_paths must be a bool"),
    (lambda: compile_nothing(pipeline=ARRAY), fe.CompileError, r"the option pipeline is"),
]


def test_annotations_that_cannot_be_looked_up_say_nothing() -> None:
    def listed(a: [fe.Int32], b: (1, [2])) -> (1, [2]):
        return a + b

    assert fe.compile(listed, 1, 2, options="--target cpu")(3, 4) == 7


@pytest.mark.parametrize(("call", "kind", "message"), [*IN_SPECS, *IN_LAYOUTS, *IN_FILES, *IN_CODE])
def test_a_mistake_is_named(
    call: Callable[[], object], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message) as caught:
        call()
    assert type(caught.value) is kind


@pytest.mark.parametrize(
    "array",
    [np.zeros(3, "S3"), np.zeros(3, object), np.zeros(3, ">f4"), np.zeros(3, "M8[s]")],
    ids=["bytes", "objects", "big-endian", "times"],
)
def test_an_array_that_dlpack_does_not_have_is_named_by_its_parameter(array: Any) -> None:
    @fe.jit
    def both(a: fe.Tensor, b: fe.Tensor):
        b[0] = a[0]

    fake = fe.make_fake_compact_tensor("float32", (N,))
    function = fe.compile(both, fake, fake, options="--target cpu")
    wanted = re.escape(f"expected Tensor, but got an array of {array.dtype}, which DLPack")
    with pytest.raises(TypeError, match=rf"on argument #1 .*{wanted}"):
        function(np.zeros(3, np.float32), array)
