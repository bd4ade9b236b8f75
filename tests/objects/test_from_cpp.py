"""Types of C++ that count their objects: nothing is left behind, and C++ reads what is made."""

from __future__ import annotations

import linecache
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tvm_ffi

import ferrule as fe
from ferrule.specs import params

CPU = "--target cpu"
SOURCE = r"""
#include <tvm/ffi/tvm_ffi.h>

namespace ffi = tvm::ffi;
static int64_t live = 0;

class CountedObj : public ffi::Object {
 public:
  int64_t value;
  int32_t small = -7;
  float half = 0.5f;
  ffi::String label;
  ffi::Array<int64_t> sizes;
  ffi::Map<ffi::String, int64_t> names;
  ffi::Optional<ffi::String> note;

  CountedObj(int64_t v, ffi::String s) : value(v), label(s) { ++live; }
  ~CountedObj() { --live; }
  int64_t Scaled(int64_t by) const { return value * by; }
  ffi::Array<ffi::String> Labels(ffi::String more) const { return {label, more}; }
  void Fail(int64_t n) const { TVM_FFI_THROW(ValueError) << "failed with " << n; }

  static constexpr bool _type_mutable = true;
  static constexpr uint32_t _type_child_slots = 1;
  TVM_FFI_DECLARE_OBJECT_INFO("ferrule.test.Counted", CountedObj, ffi::Object);
};

class Counted : public ffi::ObjectRef {
 public:
  Counted(int64_t v, ffi::String s) { data_ = ffi::make_object<CountedObj>(v, s); }
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NOTNULLABLE(Counted, ffi::ObjectRef, CountedObj);
};

class SpecialObj : public CountedObj {
 public:
  SpecialObj(int64_t v, ffi::String s) : CountedObj(v, s) {}
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("ferrule.test.Special", SpecialObj, CountedObj);
};

TVM_FFI_STATIC_INIT_BLOCK() {
  namespace refl = tvm::ffi::reflection;
  refl::ObjectDef<CountedObj>()
      .def(refl::init<int64_t, ffi::String>())
      .def_rw("value", &CountedObj::value)
      .def_ro("small", &CountedObj::small)
      .def_rw("half", &CountedObj::half)
      .def_rw("label", &CountedObj::label)
      .def_rw("sizes", &CountedObj::sizes)
      .def_rw("names", &CountedObj::names)
      .def_rw("note", &CountedObj::note)
      .def("scaled", &CountedObj::Scaled)
      .def("labels", &CountedObj::Labels)
      .def("fail", &CountedObj::Fail);
  refl::ObjectDef<SpecialObj>().def(refl::init<int64_t, ffi::String>());
  refl::GlobalDef()
      .def("ferrule.test.live", []() { return live; })
      .def("ferrule.test.counted",
           [](int64_t v, ffi::String s, ffi::Array<int64_t> sizes) {
             Counted made(v, s);
             const_cast<CountedObj*>(made.get())->sizes = sizes;
             return made;
           })
      .def("ferrule.test.sum", [](ffi::Array<Counted> all, ffi::Map<ffi::String, int64_t> more,
                                  ffi::Shape shape) {
        int64_t sum = 0;
        for (const Counted& each : all) sum += each->value;
        for (const auto& [key, value] : more) sum += value;
        for (int64_t size : shape) sum += size;
        return sum;
      });
}
"""
COUNTED = fe.Object["ferrule.test.Counted"]


@pytest.fixture(scope="session", autouse=True)
def library(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The library with the types, built and loaded once: registered twice, they end the process."""
    cpp = pytest.importorskip("tvm_ffi.cpp")
    for tool in ("c++", "ninja"):
        if shutil.which(tool) is None:
            pytest.skip(f"no {tool}, which builds types of C++")
    folder: Path = tmp_path_factory.mktemp("counted")
    return cpp.load_inline(
        "ferrule_counted",
        cpp_sources=SOURCE,
        extra_cflags=["-O0"],
        build_directory=str(folder),
    )


def live() -> int:
    return int(fe.get_global_func("ferrule.test.live")())


def counted(*given: Any) -> Any:
    return fe.get_global_func("ferrule.test.counted")(*given)


def compiled(function: Any, *examples: Any) -> fe.Function:
    return fe.compile(function, *examples, options=CPU)


def test_fields_and_methods_of_cpp_are_read_and_called() -> None:
    def host(o, n: fe.Int64):
        o.half = 0.25
        o.note = "noted"
        names, note = o.names, o.note
        known = names.get("one", -1)
        labels = o.labels("a second label of C++")
        if note is not None:
            return o.value, o.small, o.half, o.scaled(n), o.sizes[-1], labels[1], known, note
        return o.value, o.small, o.half, o.scaled(n), o.sizes[0], labels[0], known, "none"

    o = counted(5, "label", [3, 4])
    found = compiled(host, COUNTED, 1)(o, 6)
    assert found == (5, -7, 0.25, 30, 4, "a second label of C++", -1, "noted")


def test_cpp_reads_what_is_made() -> None:
    def host(o, n: fe.Int64):
        made = fe.make_object("ferrule.test.Special", n, "special")
        given = fe.Array(o, made, o)
        return fe.call(
            "ferrule.test.sum", given, fe.Map({"a": n, "b": 1}), fe.Shape((n, n)), result=fe.Int64
        )

    before = live()
    assert compiled(host, COUNTED, 1)(counted(100, "s", []), 7) == 200 + 7 + 8 + 14
    assert live() == before


def test_no_object_of_cpp_is_left_behind() -> None:
    def host(o, n: fe.Int64, f):
        o.value += 1
        made = fe.make_object("ferrule.test.Counted", n, o.label)
        all_ = fe.Array(made, o, fe.make_object("ferrule.test.Special", n, "a label on the heap"))
        o.sizes = fe.Array(n, made.value)
        o.names = fe.Map([(o.label, n)])
        if n % 3 == 1:
            made.fail(n)
        if n % 3 == 2:
            f(made, all_)
        return made, all_, o.label

    function, before = compiled(host, COUNTED, 1, params.Function("f")), live()
    o = counted(0, "a label that is no small one", [])

    def refuse(*given: Any) -> None:
        raise RuntimeError("refused")

    for n in range(600):
        try:
            function(o, n, refuse)
        except ValueError as error:
            assert str(error) == f"failed with {n}"
        except RuntimeError as error:
            assert str(error) == "refused"
    assert live() == before + 1
    assert o is not None
    del o
    assert live() == before


def test_a_compiled_function_takes_what_another_gives() -> None:
    def make(n: fe.Int64):
        return fe.make_object("ferrule.test.Special", n, "given on")

    def take(o, more: fe.Array[COUNTED]):
        total = o.value
        for each in more:
            total += each.scaled(10)
        return total

    maker, taker, before = compiled(make, 1), compiled(take, COUNTED, None), live()
    assert taker(maker(1), [maker(2), maker(3)]) == 51
    with pytest.raises(TypeError, match="expected ferrule.test.Counted, but got tuple or list"):
        taker(tvm_ffi.Array([1]), [])
    assert live() == before


NARROW = r"""
#include <tvm/ffi/tvm_ffi.h>

namespace ffi = tvm::ffi;

class NarrowObj : public ffi::Object {
 public:
  int8_t i8 = 1;
  int16_t i16 = 1;
  int32_t i32 = 1;
  int64_t i64 = 1;
  uint8_t u8 = 1;
  uint16_t u16 = 1;
  uint32_t u32 = 1;
  uint64_t u64 = 1;
  bool flag = false;
  float f32 = 1;
  double f64 = 1;
  ffi::Optional<int32_t> maybe = 1;
  ffi::Any any;
  static constexpr bool _type_mutable = true;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("ferrule.test.Narrow", NarrowObj, ffi::Object);
};

TVM_FFI_STATIC_INIT_BLOCK() {
  namespace refl = tvm::ffi::reflection;
  refl::ObjectDef<NarrowObj>()
      .def_rw("i8", &NarrowObj::i8)
      .def_rw("i16", &NarrowObj::i16)
      .def_rw("i32", &NarrowObj::i32)
      .def_rw("i64", &NarrowObj::i64)
      .def_rw("u8", &NarrowObj::u8)
      .def_rw("u16", &NarrowObj::u16)
      .def_rw("u32", &NarrowObj::u32)
      .def_rw("u64", &NarrowObj::u64)
      .def_rw("flag", &NarrowObj::flag)
      .def_rw("f32", &NarrowObj::f32)
      .def_rw("f64", &NarrowObj::f64)
      .def_rw("maybe", &NarrowObj::maybe)
      .def_rw("any", &NarrowObj::any);
  refl::GlobalDef().def("ferrule.test.narrow",
                        []() { return ffi::ObjectRef(ffi::make_object<NarrowObj>()); });
}
"""
NARROW_KEY = fe.Object["ferrule.test.Narrow"]


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder: Path = tmp_path_factory.mktemp("narrow")
    return tvm_ffi.cpp.load_inline(
        "ferrule_narrow", cpp_sources=NARROW, extra_cflags=["-O0"], build_directory=str(folder)
    )


def setter(field: str) -> Any:
    """A compiled function that sets a field of a number of its kind."""
    kind = "Float64" if field in ("f32", "f64") else "Int64"
    names: dict[str, Any] = {}
    text = f"def host(o, n: fe.{kind}):\n    o.{field} = n\n    return o.{field}\n"
    lines = text.splitlines(keepends=True)
    linecache.cache[f"<{field}>"] = (len(text), None, lines, f"<{field}>")
    exec(compile(text, f"<{field}>", "exec"), {"fe": fe}, names)
    return compiled(names["host"], NARROW_KEY, 1.0 if kind == "Float64" else 1)


RANGES = {
    **{f"i{bits}": (-(1 << bits - 1), (1 << bits - 1) - 1) for bits in (8, 16, 32)},
    **{f"u{bits}": (0, (1 << bits) - 1) for bits in (8, 16, 32)},
    "flag": (0, 1),
    "maybe": (-(1 << 31), (1 << 31) - 1),
}


@pytest.mark.parametrize("field", list(RANGES))
def test_a_field_that_cannot_hold_an_int_keeps_what_it_has(narrow: Any, field: str) -> None:
    o, put = fe.get_global_func("ferrule.test.narrow")(), setter(field)
    smallest, largest = RANGES[field]
    for value in (smallest, largest):
        assert put(o, value) == value
    for value in (smallest - 1, largest + 1, 1 << 40, -(1 << 40), (1 << 63) - 1, -(1 << 63)):
        said = rf"Narrow.{field}, expected a number that the field can hold, but got {value}"
        with pytest.raises(OverflowError, match=said):
            put(o, value)
        assert getattr(o, field) == largest


def test_a_float_that_is_too_large_for_a_field(narrow: Any) -> None:
    o, put = fe.get_global_func("ferrule.test.narrow")(), setter("f32")
    assert put(o, 0.1) == float(np.float32(0.1))
    assert put(o, float("inf")) == float("inf")
    assert np.isnan(put(o, float("nan")))
    assert put(o, -2.5) == -2.5
    for value in (1e300, -3.5e38):
        with pytest.raises(OverflowError, match=r"Narrow.f32, expected .* but got -?[13]"):
            put(o, value)
    assert o.f32 == -2.5
    assert setter("f64")(o, 1e300) == 1e300


@pytest.mark.parametrize("field", ["i64", "u64", "any"])
def test_wide_fields_hold_every_int(narrow: Any, field: str) -> None:
    def host(o, n: fe.Int64):
        o.any = n

    o = fe.get_global_func("ferrule.test.narrow")()
    put = compiled(host, NARROW_KEY, 1) if field == "any" else setter(field)
    for value in (0, (1 << 63) - 1, -(1 << 63) if field != "u64" else 5):
        put(o, value)
        assert getattr(o, field) == value


def test_read_and_set_on_one_line_tell_the_right_fault(narrow: Any) -> None:
    def host(o, n: fe.Int64):
        o.i32 = o.i32 + o.i16 + n

    with pytest.raises(OverflowError, match=f"Narrow.i32, .* but got {(1 << 40) + 2}"):
        compiled(host, NARROW_KEY, 1)(fe.get_global_func("ferrule.test.narrow")(), 1 << 40)


def test_what_is_given_by_position_goes_to_its_field() -> None:
    """A field with a default comes behind those without."""

    def host(n: fe.Int64):
        return fe.make_object("testing.TestCxxClassBase", n, n).v_i64

    def child(n: fe.Int64):
        return fe.make_object("testing.TestCxxAutoInitChild", 1, n, 3, child_kw_only=4)

    make = compiled(host, 1)
    assert make(7) == 7
    with pytest.raises(OverflowError, match=f"v_i32, expected .* but got {1 << 40}"):
        make(1 << 40)
    made = compiled(child, 1)(2)
    assert (made.parent_required, made.child_required, made.parent_default) == (1, 2, 3)


def test_an_object_is_not_made_with_what_a_field_cannot_hold() -> None:
    def host(n: fe.Int64):
        return fe.make_object("testing.TestCxxClassBase", v_i64=n, v_i32=n).v_i32

    make = compiled(host, 1)
    assert make(7) == 7
    with pytest.raises(OverflowError, match=f"v_i32, expected .* but got {1 << 40}"):
        make(1 << 40)
