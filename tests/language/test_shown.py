"""What `print`, `str` and f-strings show of values of the call, `fe.print_tensor`, and layouts and
tensors in `fe.printf`."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ferrule as fe

CPU = "--target cpu"


def matrix(dtype: Any = fe.Float32, **facts: Any) -> Any:
    return fe.row_major((fe.sym_int(), 4), dtype, **facts)


@fe.jit
def looks(a: fe.Tensor, b: fe.Tensor, n: fe.Int32, p: fe.Pointer, x: fe.Float32):
    print(a, b, sep="\n")
    print(a.shape, a.stride, a.layout, a.shape[0], fe.size(a))
    print(n, x, n + 1 > 2, a[0, 1], (n, 3), [x], {"k": n})
    print(p, a.iterator, a[None, 1], a.element_type, type(n))
    print(f"{a.layout}|{n:.2f}|{n:>3}|{b.shape!s:>8}|{x!r}|{n=}", str(n), repr(n), end="|\n")
    print(f"{a.shape} {n}" + " and " + f"{n}", "-".join([str(n), "x"]).upper())
    fragment = fe.make_rmem_tensor((4, 2), fe.Int8)
    fragment.fill(1)
    print(fragment, fragment.load())


LOOKS = """\
tensor<ptr<f32, generic> o (n0,4):(4,1)>
tensor<ptr<bf16, generic, align<16>> o (3,4):(4,1)>
(n0, 4) (4, 1) (n0,4):(4,1) n0 n0 * 4
? ? ? ? (Int32(?), 3) [Float32(?)] {'k': Int32(?)}
ptr<f32, generic> ptr<f32, generic> tensor<ptr<f32, generic> o (n0):(4)> Float32 Int32
(n0,4):(4,1)|?|  ?|  (3, 4)|?|n=? ? Int32(?)|
(n0, 4) ? and ? ?-X
tensor<ptr<i8, rmem, align<16>> o (4,2):(1,4)> vector<8xi8 o (4,2)>
"""


def test_print_shows_what_is_known(capsys: pytest.CaptureFixture[str]) -> None:
    b = fe.row_major((3, 4), fe.BFloat16, assumed_align=16)
    fe.compile(looks, matrix(), b, 1, fe.make_ptr(fe.Float32, 0), 1.0, options=CPU)
    assert capsys.readouterr().out == LOOKS


@fe.kernel
def prints_its_tensor(a: fe.Tensor):
    print(a)


@fe.jit
def launches(a: fe.Tensor):
    prints_its_tensor(a).launch(grid=1, block=1)


def test_memory_of_a_gpu(capsys: pytest.CaptureFixture[str]) -> None:
    fe.compile(launches, matrix(), options="--target cuda --gpu-arch sm_90a")
    assert capsys.readouterr().out == "tensor<ptr<f32, gmem> o (n0,4):(4,1)>\n"


@fe.jit
def returns(n: fe.Int32):
    return f"{n}"


@fe.jit
def raises(n: fe.Int32):
    text = f"{n}"
    raise ValueError(text)


@fe.jit
def prints(n: fe.Int32):
    text = f"n is {n}" + "!"
    fe.printf(text)


@fe.jit
def joins(n: fe.Int32):
    return ", ".join([f"{n}"]).upper()


@fe.jit
def compares(n: fe.Int32):
    if f"{n}" == "3":
        return 1
    return 2


@fe.jit
def measures(n: fe.Int32):
    return len(str(n))


@fe.jit
def asks(n: fe.Int32):
    return f"{n}".startswith("3")


@fe.jit
def keys(n: fe.Int32):
    return {f"{n}": 3}


LATE = "the text '{}' was made while compiling, when the values in it were not known"
NOTHING = "a text that shows a value of the call is for print\\(\\) while compiling"
MISUSES: dict[Callable[..., Any], str] = {
    returns: re.escape(LATE.format("?")),
    raises: re.escape(LATE.format("?")),
    prints: re.escape(LATE.format("n is ?!")),
    joins: re.escape(LATE.format("?")),
    compares: NOTHING,
    measures: NOTHING,
    asks: "startswith of a text that shows a value of the call",
    keys: NOTHING,
}


@pytest.mark.parametrize("misuse", MISUSES, ids=lambda f: f.__name__)
def test_nothing_depends_on_what_is_shown(misuse: Any) -> None:
    with pytest.raises(fe.CompileError, match=MISUSES[misuse]):
        fe.compile(misuse, 3, options=CPU)


@fe.kernel
def prints_elements(a: fe.Tensor, b: fe.Tensor):
    fe.print_tensor(a)
    fe.print_tensor(b[None, 0])
    fe.print_tensor(b.load(), verbose=True)


@fe.jit
def prints_in_kernel(a: fe.Tensor, b: fe.Tensor):
    prints_elements(a, b).launch(grid=1, block=1)


ELEMENTS = """\
tensor(raw_ptr(ADDRESS: f32, SPACE, align<4>) o (2,3,2):(6,2,1), data=
       [[[ 0.000000,  2.000000,  4.000000, ],
         [ 6.000000,  8.000000,  10.000000, ]],

        [[ 1.000000,  3.000000,  5.000000, ],
         [ 7.000000,  9.000000,  11.000000, ]]])
tensor(raw_ptr(ADDRESS: i8, SPACE, align<1>) o (2):(2), data=
       [-1, ],
       [2, ])
tensor(raw_ptr(i8, rmem, align<16>) o (2,2):(1,2), data= (
\t(0,0)= -1
\t(0,1)= 5
\t(1,0)= 2
\t(1,1)= 3
)
"""
CUBE = np.arange(12, dtype=np.float32).reshape(2, 3, 2)
SQUARE = np.array([[-1, 5], [2, 3]], np.int8)


def examples() -> tuple[Any, Any]:
    sizes = (fe.sym_int(), fe.sym_int(), 2)
    return fe.row_major(sizes, fe.Float32), fe.row_major((2, 2), fe.Int8)


def without_addresses(text: str) -> str:
    return re.sub("0x[0-9a-f]{16}", "ADDRESS", text)


def test_print_tensor(capfd: pytest.CaptureFixture[str]) -> None:
    fe.compile(prints_in_kernel, *examples(), options=CPU)(CUBE, SQUARE)
    assert without_addresses(capfd.readouterr().out) == ELEMENTS.replace("SPACE", "generic")


@fe.jit
def formats(a: fe.Tensor, n: fe.Int32):
    fe.printf("{} of {}", a.layout, n)
    fe.printf(f"{a.layout} of {n}, {a}")
    fe.printf(fe.zipped_divide(a.layout, (2, 2)), a.iterator)


FORMATS = """\
(3,4):(4,1) of 5
(3,4):(4,1) of 5, raw_ptr(ADDRESS: f32, generic, align<4>) o (3,4):(4,1)
((2,2),(2,2)):((4,1),(8,2)) raw_ptr(ADDRESS: f32, generic, align<4>)
"""


def test_printf_of_layouts_and_tensors(capfd: pytest.CaptureFixture[str]) -> None:
    fe.compile(formats, matrix(), 1, options=CPU)(np.zeros((3, 4), np.float32), 5)
    assert without_addresses(capfd.readouterr().out) == FORMATS


@fe.jit
def prints_coordinates(n: fe.Int32):
    whole = fe.make_identity_tensor((3, (2, n)))
    fe.printf("{} and {}", whole, whole.layout)
    fe.print_tensor(fe.local_tile(fe.make_identity_tensor((8, 8)), (2, 2), (n, 1)))
    fe.print_tensor(whole[None, 1], verbose=True)
    fe.print_tensor(fe.make_identity_tensor((1, 2, 2)))


COORDINATES = """\
(0,(0,0)) o (3,(2,2)):(1@0,(1@0@1,1@1@1)) and (3,(2,2)):(1@0,(1@0@1,1@1@1))
tensor((4,2) o (2,2):(1@0,1@1), data=
       [[ (4,2),  (4,3), ],
        [ (5,2),  (5,3), ]])
tensor((0,(1,0)) o (3):(1@0), data= (
\t(0)= (0,(1,0))
\t(1)= (1,(1,0))
\t(2)= (2,(1,0))
)
tensor((0,0,0) o (1,2,2):(1@0,1@1,1@2), data=
       [[[ (0,0,0),  (0,1,0), ]],

        [[ (0,0,1),  (0,1,1), ]]])
"""


def test_tensors_of_coordinates_are_printed(capfd: pytest.CaptureFixture[str]) -> None:
    fe.compile(prints_coordinates, fe.Int32, options=CPU)(2)
    assert capfd.readouterr().out == COORDINATES


def test_print_tensor_takes_tensors() -> None:
    @fe.jit
    def wrong(n: fe.Int32):
        fe.print_tensor(n)

    with pytest.raises(fe.CompileError, match="print_tensor takes a tensor, but got a run-time"):
        fe.compile(wrong, 1, options=CPU)


STARRED = """
@fe.jit
def writes(a: fe.Tensor):
    at = (1, 2)
    a[(0, *at[1:])] = 6.0
"""


def test_starred_coordinates() -> None:
    a = np.zeros((2, 4), np.float32)
    writes = fe.from_source(STARRED, {"fe": fe}, filename="starred.py")["writes"]
    fe.compile(writes, matrix(), options=CPU)(a)
    assert a[0, 2] == a.sum() == 6
