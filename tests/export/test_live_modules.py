"""Modules of tvm-ffi that there are in this process, as imports: looked up, and written by kind."""

from __future__ import annotations

import gc
import pickle
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tvm_ffi

import ferrule as fe
from ferrule.runtime import Function, LinkError, load_module

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="there is no C++ compiler")

SOURCE = """
#include <tvm/ffi/extra/module.h>
#include <tvm/ffi/function.h>
namespace ffi = tvm::ffi;

class BoxObj : public ffi::ModuleObj {
 public:
  static inline int64_t live = 0;
  BoxObj(std::string kind, int64_t by, int mask) : kind_(kind), by_(by), mask_(mask) { ++live; }
  ~BoxObj() { --live; }
  const char* kind() const final { return kind_.c_str(); }
  int GetPropertyMask() const final { return mask_; }
  ffi::Array<ffi::String> GetWriteFormats() const final {
    return mask_ & 4 ? ffi::Array<ffi::String>({"c"}) : ffi::Array<ffi::String>();
  }
  ffi::Optional<ffi::Function> GetFunction(const ffi::String& name) final {
    if (name != "plus") return std::nullopt;
    return ffi::Function::FromTyped([by = by_](int64_t x) { return x + by; });
  }
  ffi::Bytes SaveToBytes() const final {
    if (by_ < 0) TVM_FFI_THROW(RuntimeError) << "no negative boxes";
    return ffi::Bytes(std::string("box\\0", 4) + std::to_string(by_));
  }

 private:
  std::string kind_;
  int64_t by_;
  int mask_;
};

ffi::Module make(ffi::String kind, int64_t by, int64_t mask) {
  return ffi::Module(ffi::make_object<BoxObj>(std::string(kind), by, mask));
}
int64_t live() { return BoxObj::live; }
int64_t plus(int64_t x) { return x + 1000; }
TVM_FFI_DLL_EXPORT_TYPED_FUNC(make, make);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(live, live);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(plus, plus);
"""
BOX = "tests.box"
SERIALISABLE, WRITABLE = 3, 6
plus = fe.import_func("plus", result=fe.Int64)


@fe.jit
def asks(n: fe.Int64, a: fe.Tensor):
    a[0] = plus(n)


def asked(module: Any, n: int = 1) -> int:
    a = np.zeros(1, np.int64)
    module.asks(n, a)
    return int(a[0])


@pytest.fixture(scope="module")
def boxes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tvm_ffi.Module]:
    """The library of `make(kind, by, mask)`; a loader for the kind of boxes is registered."""
    folder = tmp_path_factory.mktemp("boxes")
    (folder / "k.cc").write_text(SOURCE)
    include = [f"-I{path}" for path in tvm_ffi.libinfo.include_paths()]
    flags = ["-O0", "-shared", "-fPIC", "-std=c++17", *include]
    subprocess.run(["g++", *flags, "k.cc", "-o", "boxes.so"], cwd=folder, check=True)
    module = tvm_ffi.load_module(folder / "boxes.so")
    key = f"ffi.Module.load_from_bytes.{BOX}"

    def load(data: bytes) -> tvm_ffi.Module:
        head, by = bytes(data).split(b"\0")
        assert head == b"box"
        return module.make(BOX, int(by), SERIALISABLE)

    tvm_ffi.register_global_func(key, load)
    yield module
    tvm_ffi.registry.remove_global_func(key)


@pytest.fixture(scope="module")
def asking() -> Function:
    one = fe.make_fake_tensor(fe.Int64, (1,), (1,))
    return fe.compile(asks, fe.Int64(1), one, options="--target cpu")


def test_functions_of_a_live_module_are_found_and_keep_it(boxes: Any, asking: Function) -> None:
    box = boxes.make(BOX, 5, SERIALISABLE)
    module = fe.Module([asking], imports=[box])
    (imported,) = module.imports
    assert (imported.kind, imported.data, imported.live) == (BOX, None, box)
    assert asked(module) == 6 and module.get_function("plus", query_imports=True)(2) == 7
    assert not module.implements_function("minus", query_imports=True)
    # What is imported later is found, too.
    box.import_module(boxes)
    assert module.implements_function("make", query_imports=True)
    assert [child.kind for child in imported.imports] == ["library"]
    # The library has a `plus` of its own.
    assert asked(fe.Module([asking], imports=[boxes])) == 1001


def test_a_live_module_goes_with_the_last_that_holds_it(boxes: Any) -> None:
    gc.collect()
    before = boxes.live()
    held = fe.Module([], imports=[boxes.make(BOX, 5, 0)])
    gc.collect()
    assert boxes.live() == before + 1
    assert held.get_function("plus", query_imports=True)(1) == 6
    del held
    gc.collect()
    assert boxes.live() == before


@pytest.mark.parametrize("way", ["tvm_ffi.so", ".so", "tvm_ffi.a", ".a", "pickle", "system_lib"])
def test_a_live_module_is_written_by_its_kind(
    way: str, boxes: Any, asking: Function, tmp_path: Path
) -> None:
    inner, box = boxes.make(BOX, 70, SERIALISABLE), boxes.make(BOX, 7, SERIALISABLE)
    box.import_module(inner)
    # One module, however often it is reached.
    module: Any = fe.Module([asking], imports=[box, box, inner])
    if way == "pickle":
        module = pickle.loads(pickle.dumps(module))
    elif way == "system_lib":
        module = module.system_lib("tests_live_")
        assert module.imports[0].same_as(box)
    else:
        path = tmp_path / f"k.{way.rpartition('.')[2]}"
        module.write_to_file(path)
        module = (tvm_ffi if way.startswith("tvm_ffi") else fe.runtime).load_module(path)
        assert len(module.imports) == 2
    assert asked(module) == 8
    assert module.imports[0].imports[0].plus(1) == 71


def test_one_prefix_has_one_live_module(boxes: Any, asking: Function) -> None:
    box, other = (boxes.make(BOX, by, SERIALISABLE) for by in (1, 2))
    first = fe.Module([asking], imports=[box]).system_lib("tests_live_one_")
    again = fe.Module([asking], imports=[box]).system_lib("tests_live_one_")
    assert first.same_as(again) and len(again.imports) == 1
    with pytest.raises(ValueError, match="the prefix 'tests_live_one_' has other functions"):
        fe.Module([asking], imports=[other]).system_lib("tests_live_one_")


def test_a_live_module_alone_and_below_others(boxes: Any, asking: Function, tmp_path: Path) -> None:
    box = boxes.make(BOX, 3, SERIALISABLE)
    alone = fe.Module.from_tvm_ffi(box)
    alone.write_to_file(tmp_path / "alone.so")
    assert tvm_ffi.load_module(tmp_path / "alone.so").plus(1) == 4
    outer = fe.Module.from_bytes(BOX, b"box\x0030", imports=[box])
    for child, found in ((outer, 31), (fe.Module([], imports=[alone]), 4)):
        module = fe.Module([asking], imports=[child])
        module.write_to_file(tmp_path / f"k{found}.so")
        assert asked(load_module(tmp_path / f"k{found}.so")) == found
        assert asked(module) == found
    with pytest.raises(ValueError, match=r"ends in .so, .a or .pyi, but got"):
        alone.write_to_file(tmp_path / "alone.h")


@pytest.mark.parametrize(
    ("kind", "by", "mask", "message"),
    [
        ("library", 0, 3, "'library' cannot be part of a file, because its code is a file of its"),
        ("tests.run", 0, 2, r"kind has no serialisation; Module.from_bytes\('tests.run', data\)"),
        ("tests.c", 0, WRITABLE, "has no serialisation; it writes 'c': write it with its write_to"),
        ("tests.no", 0, 3, "nothing here could read it again: .* ffi.Module.load_from_bytes.test"),
        ("_lib", 0, 3, "a module of bytes cannot be of kind '_lib'"),
        (BOX, -1, 3, "'tests.box', said that it can be serialised, but failed: no negative boxes"),
    ],
)
def test_what_cannot_be_serialised_is_refused(
    kind: str, by: int, mask: int, message: str, boxes: Any, asking: Function, tmp_path: Path
) -> None:
    module = fe.Module([asking], imports=[boxes.make(kind, by, mask)])
    assert asked(module) == 1 + by
    for write in (lambda: module.write_to_file(tmp_path / "k.so"), lambda: pickle.dumps(module)):
        with pytest.raises(ValueError, match=message):
            write()
    assert not list(tmp_path.iterdir())


def test_without_a_compiler_of_cpp_the_kind_is_named(
    boxes: Any, asking: Function, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ferrule.runtime.exporting import livemodules

    livemodules._built.cache_clear()
    module = fe.Module([asking], imports=[boxes.make(BOX, 1, SERIALISABLE)])
    for text, missing in (("no-such-cxx -O2", "CXX=no-such-cxx is not on PATH"), ("'", "no comma")):
        monkeypatch.setenv("CXX", text)
        with pytest.raises(LinkError, match=f"of kind 'tests.box', .*{missing}.*from_bytes"):
            module.write_to_file(tmp_path / "k.so")
    monkeypatch.setenv("CXX", "false")
    with pytest.raises(LinkError, match="of kind 'tests.box'.*\n*.*failed"):
        module.write_to_file(tmp_path / "k.so")


def test_code_of_a_foreign_library_is_no_part_of_another(
    boxes: Any, asking: Function, tmp_path: Path
) -> None:
    boxes_file = next(
        Path(line.split()[-1])
        for line in Path("/proc/self/maps").read_text().splitlines()
        if line.endswith("boxes.so")
    )
    module = fe.Module([asking], imports=[load_module(boxes_file)])
    with pytest.raises(ValueError, match="'make' is of a library, .*boxes.so, whose code cannot"):
        module.write_to_file(tmp_path / "k.so")


def test_an_object_that_was_loaded_finds_imports(
    boxes: Any, asking: Function, tmp_path: Path
) -> None:
    asking.export_to_c(tmp_path / "k.o")
    loaded = load_module(tmp_path / "k.o")
    assert asked(fe.Module([loaded.asks], imports=[boxes.make(BOX, 9, 0)])) == 10


def test_only_modules_of_tvm_ffi_are_taken() -> None:
    with pytest.raises(TypeError, match="from_tvm_ffi takes a tvm_ffi.Module, but got 3"):
        fe.Module.from_tvm_ffi(3)  # type: ignore[arg-type]
