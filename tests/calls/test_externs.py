"""`fe.extern_func`: functions of other objects, called by their symbols."""

from __future__ import annotations

import gc
import shutil
import subprocess
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ferrule as fe

HEAP = "a string of more than seven bytes"
needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")


def vector(symbol: str = "n") -> Any:
    return fe.make_fake_compact_tensor(fe.Float32, (fe.sym_int(symbol=symbol),))


def compiled(function: Any, *examples: Any) -> fe.Function:
    return fe.compile(function, *examples, options="--target cpu")


def doubled(a: fe.Tensor, s):
    if s == "raise":
        fe.raise_error("KeyError", "no {}", s)
    a[:] = a[:] * 2
    return a.shape[0], s


DOUBLED = compiled(doubled, vector(), "s")
RESULT = (fe.Int32, str)


def undefined(data: bytes) -> set[str]:
    """The undefined symbols of an object."""
    from ferrule.runtime.binaries.objectfile import read_object

    return set(read_object(data).undefined)


def test_a_compiled_function_is_called_by_its_address() -> None:
    other = fe.extern_func("doubled", function=DOUBLED, result=RESULT)

    def host(a, s):
        count, text = other(a, s)
        other(a, "again", result=None)
        return text, count

    function, a = compiled(host, vector(), "s"), np.ones(3, np.float32)
    assert function(a, HEAP) == (HEAP, 3)
    assert a.tolist() == [4, 4, 4]
    with pytest.raises(KeyError, match="no raise"):
        function(a, "raise")
    assert "= call extern @doubled(tensor, text;" in function.inspect_ir()


def test_the_function_is_kept_as_long_as_its_caller() -> None:
    def one() -> fe.Int64:
        return fe.Int64(1)

    def caller(inner: fe.Function) -> fe.Function:
        other = fe.extern_func("one", function=inner, result=fe.Int64)

        def host():
            return other() + other()

        return compiled(host)

    inner = compiled(one)
    function, gone = caller(inner), weakref.ref(inner)
    del inner
    gc.collect()
    assert function() == 2
    assert gone() is not None
    del function
    gc.collect()


@needs_compiler
def test_a_library_is_called_and_found_again(tmp_path: Path) -> None:
    library = tmp_path / "libdoubled.so"
    fe.export_library(library, [DOUBLED])
    other = fe.extern_func("doubled", library=library, result=RESULT)

    def host(a, s):
        return other(a, s)

    function, a = compiled(host, vector(), "s"), np.ones(3, np.float32)
    assert function(a, HEAP) == (3, HEAP)
    file = tmp_path / "host.o"
    function.export_to_c(file)
    assert "__tvm_ffi_doubled" in undefined(file.read_bytes())
    assert str(library) in file.read_bytes().decode(errors="replace")
    assert fe.runtime.load_module(file).host(a, "s") == (3, "s")
    assert a.tolist() == [4, 4, 4]


@needs_compiler
def test_both_in_one_library_find_each_other(tmp_path: Path) -> None:
    other = fe.extern_func("doubled", function=DOUBLED, result=RESULT)

    def host(a, s):
        return other(a, s)

    library = tmp_path / "libboth.so"
    fe.export_library(library, [compiled(host, vector(), "s"), DOUBLED])
    a = np.ones(2, np.float32)
    assert fe.runtime.load_module(library).host(a, HEAP) == (2, HEAP)
    assert a.tolist() == [2, 2]


@needs_compiler
def test_a_function_written_in_c_is_called(tmp_path: Path) -> None:
    source = tmp_path / "seven.c"
    source.write_text(
        "#include <stdint.h>\n"
        "typedef struct { int32_t type, pad; int64_t value; } any_t;\n"
        "int32_t __tvm_ffi_plus(void* h, const any_t* args, int32_t n, any_t* result) {\n"
        "  result->type = 1; result->value = n;\n"
        "  for (int i = 0; i < n; ++i) result->value += args[i].value;\n"
        "  return 0;\n}\n"
    )
    library = tmp_path / "libplus.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    plus = fe.extern_func("plus", library=str(library))

    def host(i: fe.Int32):
        return plus(i, True, 40, result=fe.Int64), plus(i, 1, result=fe.Boolean)

    def right(i: fe.Int32):
        return plus(i, 39, result=fe.Int8), plus(result=fe.Float32)

    assert compiled(right, 1)(1) == (42, 0.0)
    with pytest.raises(OverflowError, match=r"result of `plus`, expected int8, but got 1002"):
        compiled(right, 1)(961)
    with pytest.raises(ValueError, match="result of `plus`, expected True, False, 0 or 1"):
        compiled(host, 1)(1)


def test_a_missing_symbol_is_named_before_anything_is_loaded(tmp_path: Path) -> None:
    nowhere = fe.extern_func("nowhere_to_be_found")
    other = fe.extern_func("doubled", library=str(tmp_path / "missing.so"))

    def first():
        nowhere()

    def second():
        other()

    with pytest.raises(fe.CompileError, match="this process has no symbol __tvm_ffi_nowhere_to_be"):
        compiled(first)
    with pytest.raises(fe.CompileError, match="missing.so of the symbol __tvm_ffi_doubled cannot"):
        compiled(second)


def test_an_object_that_lost_its_function_says_so(tmp_path: Path) -> None:
    other = fe.extern_func("doubled", function=DOUBLED)

    def host(a):
        other(a, "s")

    file = tmp_path / "host.o"
    compiled(host, vector()).export_to_c(file)
    with pytest.raises(fe.runtime.ObjectFileError, match="this process has no symbol __tvm_ffi_do"):
        fe.runtime.load_module(file)


def test_names_must_differ(tmp_path: Path) -> None:
    host = fe.extern_func("host", function=DOUBLED)
    one, two = (fe.extern_func("other", library=str(i)) for i in range(2))
    fine = fe.extern_func("doubled", function=DOUBLED)

    def itself(a):
        host(a, "s")

    def twice(a):
        one(a)
        two(a)

    def named(a):
        fine(a, "s")

    itself.__name__ = "host"
    with pytest.raises(fe.CompileError, match="'host' is the function that calls it"):
        compiled(itself, vector())
    with pytest.raises(fe.CompileError, match="'other' is said to be two functions"):
        compiled(twice, vector())
    with pytest.raises(ValueError, match="calls the extern function 'doubled'"):
        compiled(named, vector()).export_to_c(tmp_path / "a.o", function_name="doubled")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"name": "a-b"}, ValueError, "'a-b' is no name of a C function"),
        ({"name": ""}, ValueError, "'' is no name of a C function"),
        ({"name": "f", "function": print}, TypeError, "must be a compiled one, but got <built-in"),
        ({"name": "f", "function": DOUBLED, "library": "x.so"}, ValueError, "but got both"),
    ],
)
def test_wrong_arguments_are_errors(
    arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        fe.extern_func(**arguments)


def test_outside_of_compiled_code_it_says_where_it_belongs() -> None:
    with pytest.raises(RuntimeError, match="doubled"):
        fe.extern_func("doubled", function=DOUBLED)()
