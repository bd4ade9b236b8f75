"""Calls of C functions: how arguments arrive, what becomes of results and failures."""

from __future__ import annotations

import ctypes
import sys
import zlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from c_objects import c_object

import ferrule as fe
from ferrule import compiler, specs
from ferrule.compiler import conventions
from ferrule.compiler.conventions import (
    NULL,
    CFunction,
    CString,
    HostCode,
    Reference,
    ReturnCode,
    Sequence,
    Struct,
    cast,
)
from ferrule.compiler.errors import CompileError
from ferrule.runtime.errors import StageError
from ferrule.specs import Dim, Signature, sym_int
from ferrule.specs.params import Optional, Pointer, Scalar, String, Tensor, Tuple

N = sym_int(symbol="n")
WIDE = sym_int(64, symbol="wide")
CODE = Scalar("code", "int32")


def tensor(name: str, *shape: Dim, dtype: str = "float32", **more: Any) -> Tensor:
    return Tensor(name, shape, dtype, **more)


def recorder(*types: Any, result: Any = None) -> tuple[Any, list[tuple[Any, ...]]]:
    """A C function of these types that keeps what it gets and returns its first argument."""
    seen: list[tuple[Any, ...]] = []

    def record(*values: Any) -> Any:
        seen.append(values)
        return None if result is None else values[0]

    return ctypes.CFUNCTYPE(result, *types)(record), seen


def test_sizes_strides_and_numbers_arrive_with_their_own_types() -> None:
    x = tensor("x", N, WIDE, strides=(WIDE * 2, 1))
    function, seen = recorder(ctypes.c_int32, *[ctypes.c_int64] * 5, ctypes.c_void_p)
    arguments = [*x.shape, *x.strides, N * WIDE // 2 - 7, -7, NULL]
    compiler.build(Signature("f", [x]), CFunction(function, arguments))(
        np.zeros((3, 8), np.float32)[:, :4]
    )
    assert seen == [(3, 4, 8, 1, -1, -7, None)]


def test_a_size_that_does_not_fit_its_type_is_refused() -> None:
    sig = Signature("f", [specs.params.Shape("s", (WIDE, N))])
    function, seen = recorder(ctypes.c_int32, ctypes.c_uint8)
    fn = compiler.build(sig, CFunction(function, [cast(WIDE, "int32"), cast(N * WIDE, "uint8")]))
    fn((5, 3))
    with pytest.raises(ValueError, match=r"argument #0 of .* does not fit int32: got 2147483648"):
        fn((1 << 31, 0))
    with pytest.raises(ValueError, match=r"argument #1 of .* does not fit uint8: got 256"):
        fn((128, 2))
    assert seen == [(5, 15)]


def test_an_expression_that_overflows_is_refused() -> None:
    function, seen = recorder(ctypes.c_int64)
    sig = Signature("f", [specs.params.Shape("s", (WIDE,))])
    fn = compiler.build(sig, CFunction(function, [WIDE * WIDE]))
    fn((1 << 31,))
    with pytest.raises(ValueError, match=r"argument #0 of .* overflows 64 bits"):
        fn((1 << 32,))
    assert seen == [(1 << 62,)]


SCALARS = """
#include <stdint.h>
#include <stddef.h>
void record(double* out, _Bool a, int8_t b, uint8_t c, int16_t d, uint16_t e, uint64_t f,
            float g, double h, void* p, int8_t has, int8_t item, float inside) {
    double values[] = {a, b, c, d, e, f, g, h, p == NULL, has, item, inside};
    for (int i = 0; i < 12; i++) out[i] = values[i];
}
"""


@pytest.mark.needs_cc
def test_scalars_arrive_as_c_passes_them() -> None:
    kinds = "bool int8 uint8 int16 uint16 uint64 float32 float64".split()
    out, inside = tensor("out", 12, dtype="float64"), Scalar("0", "float32")
    sig = Signature(
        "f",
        [
            out,
            *(Scalar(name, kind) for name, kind in zip("abcdefgh", kinds, strict=True)),
            Pointer("p"),
            Optional("o", Scalar("o", "int8")),
            Tuple("t", (inside,)),
        ],
    )
    code = HostCode.from_object(c_object(SCALARS, "-O2"))
    arguments = [out.data, *(sig[name] for name in "abcdefghpo"), inside]
    fn, values = compiler.build(sig, CFunction("record", arguments, code=code)), np.zeros(12)
    fn(values, True, -3, 200, -300, 60000, 1 << 62, 0.5, 0.1, None, -5, (1.25,))
    wanted = [1, -3, 200, -300, 60000, float(1 << 62), 0.5, 0.1, 1, 1, -5, 1.25]
    np.testing.assert_array_equal(values, wanted)


STRUCT = """
struct Bounds { int dims[2]; unsigned char flag; double scale; const float* data; };
double area(const struct Bounds* b) {
    return b->dims[0] * b->dims[1] * b->scale + b->flag + b->data[1];
}
"""


@pytest.mark.needs_cc
def test_a_struct_goes_by_its_address() -> None:
    x = tensor("x", N)
    bounds = Struct([N, cast(3, "int32"), cast(7, "uint8"), cast(0.5, "float64"), x.data])
    code = HostCode.from_object(c_object(STRUCT))
    call = CFunction("area", [Reference(bounds, reads_only=True)], returns="float64", code=code)
    fn = compiler.build(Signature("area", [x]), call)
    assert fn(np.array([1, 100, 3, 4], np.float32)) == 4 * 3 * 0.5 + 7 + 100


def test_a_reference_is_to_one_value() -> None:
    with pytest.raises(TypeError, match="expected one value"):
        Reference(Tuple("t", (Scalar("0", "int32"), Scalar("1", "int32"))))


@pytest.mark.parametrize(
    ("dtype", "c_type", "value"),
    [
        ("bool", ctypes.c_bool, True),
        ("int8", ctypes.c_int8, -128),
        ("uint8", ctypes.c_uint8, 255),
        ("int32", ctypes.c_int32, -7),
        ("uint32", ctypes.c_uint32, 4_000_000_000),
        ("int64", ctypes.c_int64, -(1 << 63)),
        ("float32", ctypes.c_float, 0.5),
        ("float64", ctypes.c_double, 0.1),
    ],
)
def test_a_value_comes_back(dtype: str, c_type: Any, value: Any) -> None:
    function, _ = recorder(c_type, result=c_type)
    x = Scalar("x", dtype)
    fn = compiler.build(Signature("f", [x]), CFunction(function, [x], returns=dtype))
    assert fn(value) == value
    assert str(fn.signature).endswith(f"-> {dtype}")


def test_a_pointer_comes_back() -> None:
    function, _ = recorder(ctypes.c_void_p, result=ctypes.c_void_p)
    x = Pointer("x")
    fn = compiler.build(Signature("f", [x]), CFunction(function, [x], returns="pointer"))
    assert fn(0x1234).value == 0x1234


def test_a_status_is_an_error() -> None:
    function, _ = recorder(ctypes.c_int, result=ctypes.c_int)
    fn = compiler.build(Signature("f", [CODE]), CFunction(function, [CODE], returns="status"))
    assert fn(0) is None
    with pytest.raises(RuntimeError, match="returned -7"):
        fn(-7)


def test_codes_become_the_errors_of_their_table() -> None:
    function, _ = recorder(ctypes.c_int, result=ctypes.c_int)
    errors = {-1: (ValueError, "a {bad} value"), -2: ("MemoryError", "no room")}
    code = ReturnCode(fails="negative", errors=errors, value=True)
    fn = compiler.build(Signature("f", [CODE]), CFunction(function, [CODE], returns=code))
    assert [fn(0), fn(5)] == [0, 5]
    with pytest.raises(ValueError, match="^a {bad} value$"):
        fn(-1)
    with pytest.raises(MemoryError, match="^no room$"):
        fn(-2)
    with pytest.raises(RuntimeError, match="returned -3"):
        fn(-3)


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"dtype": "float32"}, "expected an integer dtype"),
        ({"dtype": "uint32", "fails": "negative"}, "uint32 is never negative"),
        ({"fails": "sometimes"}, "expected fails='nonzero', 'negative' or 'zero'"),
        ({"errors": {0: (ValueError, "x")}}, "0 is no failure"),
        ({"errors": {1: (ValueError, "x")}, "fails": "negative"}, "1 is no failure"),
        ({"dtype": "int8", "errors": {200: (ValueError, "x")}}, "int8 is never 200"),
    ],
)
def test_what_is_no_return_code(given: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        ReturnCode(**given)


@pytest.mark.parametrize(
    "errors", [["x"], {1: "x"}, {"1": (ValueError, "x")}, {True: (ValueError, "x")}]
)
def test_errors_are_a_table(errors: Any) -> None:
    with pytest.raises(TypeError, match=r"\{-1: \(ValueError, \"what is wrong\"\)\}, but got"):
        ReturnCode(errors=errors)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("float", "returns='float' is no dtype: write returns='float32'"),
        ("size_t", "write returns='uint64'"),
        ("char*", "write returns='pointer'"),
        ("long double", "no dtype is C's long double: let the function return a double"),
        ("complex64", r"as two: write returns=\['float32', 'float32'\]"),
    ],
)
def test_types_of_c_are_no_dtypes(given: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        CFunction("f", returns=given)


@pytest.mark.parametrize("convention", [CFunction, conventions.Memref, conventions.SafeCall])
@pytest.mark.parametrize("arguments", [N, "xy", {"x": N}, None, 3])
def test_arguments_are_in_a_list(convention: Any, arguments: Any) -> None:
    with pytest.raises(TypeError, match="the arguments of .*f must be in a list, but got"):
        convention("f", arguments)


def test_attributes_of_python_are_no_symbols_of_c() -> None:
    sig = Signature("f", [tensor("x", N)])
    with pytest.raises(CompileError, match="this process has no symbol __class__"):
        compiler.build(sig, CFunction("__class__"))


def test_a_call_is_made_where_its_condition_holds() -> None:
    function, seen = recorder(ctypes.c_int32)
    sig = Signature("f", [tensor("x", N)])
    fn = compiler.build(sig, CFunction(function, [N], when=N > 3))
    for size in (3, 4):
        fn(np.zeros(size, np.float32))
    assert seen == [(4,)]
    with pytest.raises(ValueError, match="can give nothing back"):
        CFunction(function, [N], returns="int32", when=N > 3)


def test_results_are_allocated_and_returned() -> None:
    x, y = tensor("x", N), tensor("y", N)
    copy = CFunction("memcpy", [y.data, x.data, cast(x.nbytes, "uint64")])
    fn = compiler.build(Signature("copy", [x]), copy, results=[y])
    given = np.arange(5, dtype=np.float32)
    np.testing.assert_array_equal(np.from_dlpack(fn(given)), given)


def test_the_checksum_of_zlib() -> None:
    try:
        code = HostCode.from_library("libz.so.1")
    except CompileError as error:
        pytest.skip(str(error))
    x, start = tensor("x", N, dtype="uint8"), Scalar("start", "uint64", default=0)
    arguments = [start, x.data, cast(N, "uint32")]
    fn = compiler.build(
        Signature("crc32", [x, start]), CFunction("crc32", arguments, returns="uint64", code=code)
    )
    data = np.frombuffer(b"the quick brown fox", np.uint8).copy()
    assert fn(data) == zlib.crc32(data)
    assert fn(data[9:].copy(), fn(data[:9].copy())) == zlib.crc32(data)


def blas() -> tuple[str, str, str]:
    """A BLAS of this machine: its library, its name of `cblas_sgemm`, the type of its sizes."""
    bundled = Path(np.__file__).parents[1].joinpath("numpy.libs").glob("libscipy_openblas64_*")
    known = [(str(path), "scipy_cblas_sgemm64_", "int64") for path in bundled]
    names = ("libopenblas.so.0", "libcblas.so.3", "libblas.so.3")
    for library, symbol, size in [*known, *((name, "cblas_sgemm", "int32") for name in names)]:
        try:
            if hasattr(ctypes.CDLL(library), symbol):
                return library, symbol, size
        except OSError:
            continue
    pytest.skip("there is no BLAS with cblas_sgemm, of NumPy or of the system")


def test_a_matrix_product_of_blas() -> None:
    library, symbol, size = blas()
    m, n, k = (sym_int(symbol=name) for name in "mnk")
    pitch = specs.sym_int64()
    a = tensor("a", m, k, strides=(pitch, 1))
    b, c = tensor("b", k, n), tensor("c", m, n)
    row_major, plain = cast(101, "int32"), cast(111, "int32")
    sizes = [cast(each, size) for each in (m, n, k)]
    arguments: list[Any] = [row_major, plain, plain, *sizes, cast(1.0, "float32"), a.data]
    arguments += [cast(pitch, size), b.data, cast(n, size), cast(0.0, "float32"), c.data]
    call = CFunction(symbol, [*arguments, cast(n, size)], code=HostCode.from_library(library))
    fn = compiler.build(Signature("matmul", [a, b]), call, results=[c])
    x = np.arange(12, dtype=np.float32).reshape(3, 4)[:, :2]
    y = np.arange(10, dtype=np.float32).reshape(2, 5)
    np.testing.assert_allclose(np.from_dlpack(fn(x, y)), x @ y)


def test_functions_that_every_process_has() -> None:
    x, y = Scalar("x", "float64"), Scalar("y", "float64")
    call = CFunction("nextafter", [x, y], returns="float64", code=HostCode.from_library(None))
    fn = compiler.build(Signature("nextafter", [x, y]), call)
    assert fn(1.0, 2.0) == np.nextafter(1.0, 2.0)


def test_an_address_cannot_be_exported(tmp_path: Path) -> None:
    function, _ = recorder(ctypes.c_int32)
    fn = compiler.build(Signature("f", [CODE]), CFunction(function, [CODE]))
    with pytest.raises(StageError, match="calls the address 0x.* in this process alone"):
        fn.export_to_c(tmp_path / "f.o")


def test_a_function_keeps_the_python_function_that_it_calls() -> None:
    call = CFunction(recorder(ctypes.c_int32, result=ctypes.c_int32)[0], [CODE], returns="int32")
    fn = compiler.build(Signature("f", [CODE]), call)
    del call
    assert fn(41) == 41


def test_the_error_of_a_call_leaves_nothing_undone() -> None:
    """Results that were allocated are released: the allocator finds no leak."""
    x, y = tensor("x", N), tensor("y", N)
    function, _ = recorder(ctypes.c_int32, result=ctypes.c_int32)
    call = CFunction(function, [N], returns="status")
    fn = compiler.build(Signature("f", [x]), call, results=[y])
    with pytest.raises(RuntimeError, match="returned 3"):
        fn(np.zeros(3, np.float32))


def test_a_class_that_is_no_error_is_refused() -> None:
    with pytest.raises(
        TypeError, match="expected a class of errors or its name, but got <class 'i"
    ):
        ReturnCode(errors={1: (int, "x")})  # type: ignore[dict-item]
    with pytest.raises(TypeError, match="value must be True or False, but got 'yes'"):
        ReturnCode(value="yes")  # type: ignore[arg-type]


@pytest.mark.parametrize("argument", [True, None, [1]])
def test_what_is_no_argument(argument: Any) -> None:
    with pytest.raises(TypeError, match=r"argument #0 of f must be a parameter, the \.data of"):
        CFunction("f", [argument])


@pytest.mark.parametrize("function", ["", "no name", "a\n"])
def test_what_is_no_name(function: str) -> None:
    with pytest.raises(ValueError, match="is no name of a C function"):
        CFunction(function)


@pytest.mark.parametrize("function", ["__tvm_ffi_f", "ferrule_check", "größe", "f("])
def test_names_that_no_code_may_call(function: str) -> None:
    with pytest.raises(ValueError, match="is no name of a C function that code can call"):
        compiler.build(Signature("f", []), CFunction(function))


def test_what_is_no_function() -> None:
    with pytest.raises(TypeError, match="expected the address of a C function"):
        CFunction(3.5)
    with pytest.raises(ValueError, match="expected the address of a C function, but got 0x0"):
        CFunction(0)
    with pytest.raises(TypeError, match=r"expected code=HostCode\.from_object"):
        CFunction("f", code=b"\x7fELF")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="expected the name of a function of the code"):
        CFunction(4096, code=HostCode.from_library(None))


def test_a_function_that_is_nowhere() -> None:
    with pytest.raises(CompileError, match="process has no symbol no_such_function\n  hint"):
        compiler.build(Signature("f", []), CFunction("no_such_function"))


@pytest.mark.skipif(sys.platform != "linux", reason="needs the loader of Linux")
def test_a_function_whose_name_is_misspelt() -> None:
    with pytest.raises(CompileError, match=r"symbol memcopy\n  hint: did you mean memcpy\?"):
        compiler.build(Signature("f", []), CFunction("memcopy"))


def test_a_function_that_nobody_has_yet() -> None:
    code, sig = HostCode.undefined(), Signature("f", [CODE])
    later = Sequence([CFunction("labs", [CODE]), CFunction("g", [CODE], code=code)])
    with pytest.raises(CompileError, match=r"f: g is HostCode\.undefined\(\)[\s\S]*emit_wrapper"):
        compiler.build(sig, later)
    twice = Sequence([CFunction("g", kinds, code=code) for kinds in ([CODE], [1])])
    with pytest.raises(ValueError, match="g is called with different types, so nobody can define"):
        compiler.emit_wrapper(sig, twice)


def test_a_tensor_is_a_parameter_or_a_result() -> None:
    sig, copied = Signature("f", [tensor("x", N), y := tensor("y", N)]), CFunction("labs", [N])
    for results in ([y], [z := tensor("z", N), z]):
        with pytest.raises(ValueError, match="is a result and a parameter or another result"):
            compiler.build(sig, copied, results=results)
    for results in ([tensor("y", N)], [tensor("z", N), tensor("z", N)]):
        with pytest.raises(ValueError, match="f: the result '[yz]' is called as .* is: give it a"):
            compiler.build(sig, copied, results=results)
    with pytest.raises(ValueError, match="the temporary 'y' is a parameter, too"):
        compiler.build(sig, Sequence([copied], temporaries=[y]))


@pytest.mark.parametrize("argument", [tensor("z", WIDE).data, WIDE, WIDE + 1])
def test_arguments_of_another_signature(argument: Any) -> None:
    function, _ = recorder(ctypes.c_int64)
    with pytest.raises(ValueError, match=r"is in no parameter of f"):
        compiler.build(Signature("f", [tensor("x", N)]), CFunction(function, [argument]))


def test_equal_items_cannot_be_told_apart() -> None:
    function, _ = recorder(ctypes.c_int32)
    sig = Signature("f", [Tuple(name, (Scalar("0", "int32"),)) for name in "tu"])
    with pytest.raises(ValueError, match="stands at several places of f"):
        compiler.build(sig, CFunction(function, [Scalar("0", "int32")]))


def test_a_callback_is_a_pointer() -> None:
    x, compare = tensor("x", N, dtype="int32"), Pointer("compare", nullable=False)
    four = cast(4, "uint64")
    call = CFunction("qsort", [x.data, cast(N, "uint64"), four, compare])
    fn = compiler.build(Signature("sort", [x, compare]), call)
    pointer = ctypes.POINTER(ctypes.c_int)
    kind = ctypes.CFUNCTYPE(ctypes.c_int, pointer, pointer)
    descending = kind(lambda a, b: int(b[0] - a[0]))
    values = np.array([3, 9, -4], np.int32)
    fn(values, ctypes.cast(descending, ctypes.c_void_p))
    assert values.tolist() == [9, 3, -4]


def test_a_text_goes_and_comes_as_c_has_it() -> None:
    name, value = String("name"), String("value")
    given = [CString(name), CString(value), cast(1, "int32")]
    put = compiler.build(Signature("put", [name, value]), CFunction("setenv", given))
    call = CFunction("getenv", [CString(name)], returns="string")
    get = compiler.build(Signature("get", [name]), call)
    put("FERRULE_OF_A_TEST", "wört" * 20)
    assert get("FERRULE_OF_A_TEST") == "wört" * 20
    assert str(get.signature) == "get(name: str) -> str"
    with pytest.raises(RuntimeError, match="getenv returned a null pointer, not a string"):
        get("FERRULE_OF_NO_TEST")
    with pytest.raises(ValueError, match="#0 of getenv has a zero in it, where C takes it to end"):
        get("HOME\0more")


def test_a_text_that_comes_back_is_a_copy_of_what_it_was_then() -> None:
    text, code = String("text"), Scalar("code", "int32")
    place = Tensor("place", (256,), "uint8")
    calls = [
        CFunction("strcpy", [place.data, CString(text)], returns="string"),
        CFunction("memset", [place.data, cast(65, "int32"), cast(256, "uint64")]),
        CFunction("abs", [code], returns="status"),
    ]
    fn = compiler.build(Signature("f", [text, code]), Sequence(calls, temporaries=[place]))
    assert [fn("x" * n, 0) for n in (0, 7, 8, 255)] == ["x" * n for n in (0, 7, 8, 255)]
    with pytest.raises(RuntimeError, match="abs returned 1"):
        fn("x" * 255, 1)


def test_what_is_no_text_of_c() -> None:
    with pytest.raises(TypeError, match="CString: expected a String of the signature or a text"):
        CString(b"x")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="CString: 'a.x00b' has a zero in it"):
        CString("a\0b")
    with pytest.raises(ValueError, match=r"CString: '.udc00' has no UTF-8"):
        CString("\udc00")


@pytest.mark.parametrize(
    ("argument", "said"),
    [
        ("text", r"is 'text': a text goes as conventions\.CString\(…\)"),
        (2.5, r"is 2.5: a number has a type in C, conventions\.cast\(…, 'float64'\)"),
        (len, "is <built-in function len>: a callback is a parameter of the signature"),
    ],
)
def test_what_looks_like_an_argument_in_python(argument: Any, said: str) -> None:
    with pytest.raises(TypeError, match=f"argument #0 of f {said}"):
        CFunction("f", [argument])


def formatted(*arguments: Any, **more: Any) -> Any:
    """What snprintf makes of a number, by a format that takes one."""
    buffer, form = tensor("buffer", 32, dtype="uint8"), CString("<%.3f>")
    call = CFunction("snprintf", [buffer.data, cast(32, "uint64"), form, *arguments], **more)
    return compiler.build(Signature("format", [buffer, *arguments]), call)


def test_a_function_that_takes_any_arguments_says_where_these_begin() -> None:
    x, out = Scalar("x", "float64"), np.zeros(32, np.uint8)
    assert formatted(x, variadic_from=3, returns="int32")(out, 2.5) == 7
    assert bytes(out[:8]) == b"<2.500>\0"
    with pytest.raises(ValueError, match="snprintf takes any .* first of these, variadic_from=3"):
        formatted(x)
    with pytest.raises(ValueError, match="variadic_from=9 is no position among its 4 arguments"):
        formatted(x, variadic_from=9)
    with pytest.raises(TypeError, match="must be the position of the first .* but got '3'"):
        formatted(x, variadic_from="3")


def test_a_function_of_llvm_ir_has_dots_where_the_call_says_so() -> None:
    text = """
    declare i32 @snprintf(ptr, i64, ptr, ...)
    define i32 @dots(ptr %to, i64 %most, ptr %form, ...) {
      %p = load i8, ptr %form
      %n = call i32 (ptr, i64, ptr, ...) @snprintf(ptr %to, i64 %most, ptr %form, double 0.5)
      ret i32 %n
    }
    define i32 @plain(i32 %a, i32 %b) {
      ret i32 %b
    }
    """
    code, a, out = HostCode.from_llvm(text), Scalar("a", "int32"), tensor("out", 8, dtype="uint8")
    given = [out.data, cast(8, "int64"), CString("%g"), a]
    call = CFunction("dots", given, code=code, variadic_from=3, returns="int32")
    assert compiler.build(Signature("f", [out, a]), call)(np.zeros(8, np.uint8), 1) == 3
    for name, args, more in (("dots", given, {}), ("plain", [a, a], {"variadic_from": 1})):
        wrong = CFunction(name, args, code=code, **more)
        with pytest.raises(CompileError, match="does not take what the call gives it"):
            compiler.build(Signature("f", [out, a]), wrong)


@pytest.mark.parametrize(("dtype", "wanted"), [("float32", "float64"), ("int8", "int32")])
def test_what_c_makes_wider_behind_the_dots_is_refused(dtype: str, wanted: str) -> None:
    with pytest.raises(TypeError, match=rf"#3 is .* write conventions\.cast\(…, '{wanted}'\)"):
        formatted(Scalar("x", dtype), variadic_from=3)


def test_a_name_may_stand_for_functions_of_several_types() -> None:
    """Two calls of one C function, with different types, in one body."""
    out = tensor("out", 4, dtype="uint8")
    steps = [
        CFunction("memset", [out.data, cast(7, "int32"), cast(2, "uint64")]),
        CFunction("memset", [out.data.byte_offset(2), cast(9, "int64"), cast(2, "int64")]),
    ]
    fn = compiler.build(Signature("fill", [out]), conventions.Sequence(steps))
    values = np.zeros(4, np.uint8)
    fn(values)
    assert values.tolist() == [7, 7, 9, 9]


def test_the_facade_has_what_a_frontend_writes() -> None:
    assert fe.compiler.conventions.CFunction is CFunction


def test_a_call_that_may_be_left_out_gives_nothing_back() -> None:
    n = Scalar("n", "int32")
    calls = Sequence([CFunction("abs", [n], returns="int32")], when=n.value > 0)
    with pytest.raises(ValueError, match="f: a call that depends on a condition can give nothing"):
        compiler.build(Signature("f", [n]), calls)


def test_a_convention_that_does_not_give_what_it_says_is_refused() -> None:
    n = Scalar("n", "int32")
    lacking = SimpleNamespace(when=None, codes=list, results=lambda: [n], emit=lambda call: None)
    with pytest.raises(ValueError, match=r"f: a convention gives back what .* \(\[1\]\), but"):
        compiler.build(Signature("f", [n]), lacking)
