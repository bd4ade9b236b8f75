"""The emitter: what it writes is LLVM that parses, with one constant for equal texts."""

from __future__ import annotations

import ctypes

import pytest
from llvmlite import binding, ir

from ferrule.runtime import Engine
from ferrule.runtime.cfunctions import C_FUNCTIONS, Library
from ferrule.runtime.llvm.emitter import COLD, LIKELY, Emitter
from ferrule.runtime.llvm.layouts import ANY, BYTE_ARRAY, DLTENSOR, I8, I32, I64, PTR, VOID

from .conftest import compile_text


def _verified(emitter: Emitter) -> str:
    binding.parse_assembly(emitter.text()).verify()
    return emitter.text()


def test_same_calls_give_the_same_text() -> None:
    def build() -> str:
        e = Emitter("m")
        with e.define("f", I32, [PTR], names=["x"]) as function:
            with e.if_then(e.is_null(function.args[0]), likely=False):
                e.ret(e.const_i32(-1))
            e.ret(e.load_field(function.args[0], DLTENSOR, "ndim"))
        return _verified(e)

    assert build() == build()
    assert 'getelementptr inbounds i8, ptr %"x", i64 16' in build()


def test_equal_constants_are_one() -> None:
    e = Emitter("m")
    assert e.cstring("né") is e.cstring("né")
    assert e.bytes_constant(b"n\xc3\xa9\0") is e.cstring("né")
    assert e.byte_array("a") is e.byte_array("a")
    assert e.byte_array("a") is not e.byte_array("b")
    assert e.bytes_constant(b"a\0", align=8).align == 8
    assert e.bytes_constant(b"a\0").align == 8
    _verified(e)


def test_c_functions_are_declared_once_and_only_from_the_table() -> None:
    e = Emitter("m")
    assert e.extern("malloc") is e.extern("malloc")
    with pytest.raises(KeyError, match="printf is not in the table"):
        e.extern("printf")
    with pytest.raises(TypeError, match="asked for as"):
        e.symbol("malloc", ir.FunctionType(VOID, []))


def test_table_is_sound() -> None:
    for name, function in C_FUNCTIONS.items():
        assert name == function.name
        assert (function.library is Library.TVM_FFI) == name.startswith("TVMFFI")


def test_functions_nest_and_must_end() -> None:
    e = Emitter("m")
    with e.define("outer", VOID, []):
        with e.define("inner", VOID, [], linkage="internal", attributes=COLD) as inner:
            e.ret()
        e.call(inner, [])
        e.ret()
    assert 'internal void @"inner"() cold minsize noinline optsize' in _verified(e)
    with pytest.raises(RuntimeError, match="body of open has no end"), e.define("open", VOID, []):
        pass


def test_branch_weights() -> None:
    e = Emitter("m")
    with e.define("f", VOID, [ir.IntType(1)]) as function:
        yes, no = e.block("yes"), e.block("no")
        e.cond_branch(function.args[0], yes, no, LIKELY)
        with e.within(yes):
            e.ret()
        e.at(no)
        e.ret()
    assert '!"branch_weights", i32 99, i32 1' in _verified(e)


def test_alloca_in_a_loop_is_reserved_once() -> None:
    e = Emitter("m")
    with e.define("f", VOID, [I64]) as function:
        with e.loop(function.args[0]) as i:
            e.store_field(e.alloca(ANY, 2, name="slot"), ANY, "v_int64", i)
        e.ret()
    entry = _verified(e).split("i.head:")[0]
    assert "alloca [32 x i8], align 8" in entry


def test_types_are_checked_where_they_are_written() -> None:
    e = Emitter("m")
    with e.define("f", VOID, [PTR]) as function:
        with pytest.raises(TypeError, match="TVMFFIAny.type_index is i32, the value i64"):
            e.store_field(function.args[0], ANY, "type_index", e.const_i64(1))
        e.ret()
    with pytest.raises(OverflowError, match="does not fit 32 bits"):
        e.const_i32(1 << 32)
    assert e.const_i32(0xFFFFFFFF).constant == -1


def test_code_runs() -> None:
    e = Emitter("m")
    with e.define("helper", I32, [PTR], linkage="internal") as helper:
        e.ret(e.load_field(helper.args[0], BYTE_ARRAY, "size").type and e.const_i32(5))
    with e.define("sum", I64, [PTR, I64], names=["values", "count"]) as function:
        values, count = function.args
        total = e.alloca(I64, name="total")
        e.store(e.const_i64(0), total)
        with e.loop(count) as i:
            value = e.load(e.index(values, I64, i), I64)
            e.store(e.builder.add(e.load(total, I64), value), total)
        pointer = e.alloca(PTR)
        e.store(helper, pointer)
        kind = ir.FunctionType(I32, [PTR])
        five = e.call_pointer(e.load(pointer, PTR), kind, [e.byte_array("text")])
        length = e.call("strlen", [e.cstring("four")])
        extra = e.builder.add(e.builder.sext(five, I64), length)
        e.ret(e.builder.add(e.load(total, I64), extra))
    engine = Engine.load(compile_text(_verified(e), "sum"))
    kind = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)
    numbers = (ctypes.c_int64 * 3)(1, 20, 300)
    assert kind(engine.address("sum"))(ctypes.addressof(numbers), 3) == 321 + 5 + 4


def test_elements_of_arrays() -> None:
    e = Emitter("m")
    with e.define("f", PTR, [PTR]) as function:
        assert e.index(function.args[0], ANY, 0) is function.args[0]
        e.ret(e.index(e.index(function.args[0], ANY, 3), I8, 1))
    assert "getelementptr inbounds [16 x i8]" in _verified(e)
