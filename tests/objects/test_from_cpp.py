"""Types of C++ that count their objects: nothing is left behind, and C++ reads what is made."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

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
