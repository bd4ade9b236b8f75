"""`fe.Module`: functions by name, their texts, files, and the way to a module of tvm-ffi."""

from __future__ import annotations

import pickle
import uuid
from pathlib import Path

import pytest
import tvm_ffi
from exported import ADDED, DOUBLED, applied, compiled_add_one, run_python, vectors

import ferrule as fe
from ferrule.runtime import Function, StageError


@pytest.fixture
def both(add_one: Function, scale: Function) -> fe.Module:
    return fe.Module([add_one, scale])


def test_functions_by_name(both: fe.Module, add_one: Function) -> None:
    assert list(both) == ["add_one_host", "scale_host"]
    assert both["add_one_host"] is both.add_one_host is add_one
    assert (both.kind, both.path, both.imports) == ("jit", None, ())
    assert repr(both) == "<ferrule.Module of add_one_host, scale_host>"


def test_functions_under_other_names(add_one: Function, tmp_path: Path) -> None:
    module = fe.Module({"first": add_one, "second": add_one})
    module.write_to_file(tmp_path / "k.a")
    loaded = fe.runtime.load_module(tmp_path / "k.a")
    assert list(loaded) == ["first", "second"]
    assert loaded.second.name == "second"
    assert applied(loaded.second) == ADDED


def test_what_is_no_function_is_refused(add_one: Function) -> None:
    with pytest.raises(TypeError, match="a compiled function, from ferrule.compile, but got 3"):
        fe.Module([3])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="a compiled function"):
        fe.Module({"f": len})  # type: ignore[dict-item]
    with pytest.raises(ValueError, match="two functions are named 'add_one_host'"):
        fe.Module([add_one, add_one])


def test_imports_are_asked_where_a_look_up_says_so(add_one: Function, scale: Function) -> None:
    inner = fe.Module([scale])
    module = fe.Module([add_one], imports=[inner])
    assert list(module.imports) == [inner]
    assert not module.implements_function("scale_host")
    assert module.implements_function("scale_host", query_imports=True)
    assert module.get_function("scale_host", query_imports=True) is scale
    with pytest.raises(AttributeError, match="has no function 'scale_host'"):
        module.get_function("scale_host")
    with pytest.raises(AttributeError, match="has no function 'neither'"):
        module.get_function("neither", query_imports=True)


def test_the_texts_of_all_functions(both: fe.Module, add_one: Function) -> None:
    assert "@__tvm_ffi_add_one_host(" in both.inspect_source()
    assert "@__tvm_ffi_scale_host(" in both.inspect_source("ll")
    assert both.inspect_source("ir").startswith(add_one.inspect_ir())
    assert "__tvm_ffi_scale_host:" in both.inspect_source("asm")
    on_gpu = fe.Module([compiled_add_one("--target cuda --gpu-arch sm_90a")])
    assert ".target sm_90a" in on_gpu.inspect_source("ptx")
    with pytest.raises(StageError, match="no 'cubin' text; available: ir, ll, asm, ptx"):
        both.inspect_source("cubin")  # type: ignore[arg-type]
    with pytest.raises(StageError, match="it has no kernels for a GPU"):
        both.inspect_source("ptx")


@pytest.mark.needs_cc
def test_a_module_is_written_in_the_form_of_the_suffix(both: fe.Module, tmp_path: Path) -> None:
    for suffix in ("so", "a", "h", "hpp", "pyi"):
        both.write_to_file(tmp_path / f"k.{suffix}")
    for suffix in ("so", "a"):
        assert applied(fe.runtime.load_module(tmp_path / f"k.{suffix}").scale_host) == DOUBLED
    for suffix in ("h", "hpp", "pyi"):
        assert "scale_host(" in (tmp_path / f"k.{suffix}").read_text()
    with pytest.raises(ValueError, match="a module of 2 functions is written to a file that ends"):
        both.write_to_file(tmp_path / "k.o")
    fe.Module([both.scale_host]).write_to_file(tmp_path / "k.o")
    assert applied(fe.runtime.load_module(tmp_path / "k.o").scale_host) == DOUBLED


def test_a_module_of_tvm_ffi(both: fe.Module) -> None:
    prefix = f"tests_{uuid.uuid4().hex}_"
    module = both.system_lib(prefix)
    assert isinstance(module, tvm_ffi.Module) and module.kind == "library"
    assert applied(module.add_one_host) == ADDED
    assert applied(module["scale_host"], 2.0) == DOUBLED
    assert module.get_function_doc("add_one_host").startswith("Adds one")
    assert applied(both.system_lib(prefix).add_one_host) == ADDED
    with pytest.raises(ValueError, match="the prefix 'tests_.* has other functions: choose anot"):
        fe.Module([both.scale_host]).system_lib(prefix)


def test_a_pickle_carries_the_code(add_one: Function, scale: Function) -> None:
    data = pickle.dumps([scale, add_one, scale])
    first, second, third = pickle.loads(data)
    assert first is third
    assert (applied(first), applied(second)) == (DOUBLED, ADDED)
    assert (repr(first), first.__doc__) == (repr(scale), scale.__doc__)
    assert applied(pickle.loads(pickle.dumps(first)), factor=0) == [0, 0, 0]


def test_a_module_can_be_pickled(add_one: Function, scale: Function) -> None:
    module = fe.Module({"f": add_one}, imports=[fe.Module([scale])])
    again = pickle.loads(pickle.dumps(module))
    assert applied(again.f) == ADDED
    assert applied(again.get_function("scale_host", query_imports=True)) == DOUBLED


UNPICKLE = """
import pickle, sys
import numpy as np
with open(sys.argv[1], "rb") as file:
    function = pickle.load(file)
a, b = np.ones(3, np.float32), np.zeros(3, np.float32)
function(a, b, factor=4.0)
print(b.tolist(), "ferrule.language" in sys.modules, "ferrule.compiler" in sys.modules)
"""


def test_a_pickle_is_read_in_another_process(scale: Function, tmp_path: Path) -> None:
    (tmp_path / "scale.pickle").write_bytes(pickle.dumps(scale))
    assert run_python(UNPICKLE, tmp_path / "scale.pickle") == "[4.0, 4.0, 4.0] False False\n"


@pytest.mark.needs_cc
def test_what_came_from_a_library_says_why_it_has_no_pickle(
    scale: Function, tmp_path: Path
) -> None:
    scale.export_library(tmp_path / "k.so")
    function = fe.runtime.load_module(tmp_path / "k.so").scale_host
    with pytest.raises(TypeError, match="cannot be pickled: .*was loaded from .*k.so"):
        pickle.dumps(function)


@pytest.mark.needs_cc
def test_functions_of_one_module_call_each_other(scale: Function, tmp_path: Path) -> None:
    direct = fe.extern_func("scale_host", function=scale)

    @fe.jit
    def caller_host(a: fe.Tensor, b: fe.Tensor):
        direct(a, b, 3.0)
        direct(b, b, 2.0)

    caller = fe.compile(caller_host, *vectors(), options="--target cpu")
    module = fe.Module({"caller": caller, "scale_host": scale})
    loaded = []
    for suffix in ("so", "a"):
        module.write_to_file(tmp_path / f"k.{suffix}")
        loaded.append(fe.runtime.load_module(tmp_path / f"k.{suffix}"))
        loaded.append(tvm_ffi.load_module(tmp_path / f"k.{suffix}"))
    loaded.append(module.system_lib(f"tests_{uuid.uuid4().hex}_"))
    assert [applied(each.caller) for each in loaded] == [[0.0, 6.0, 12.0]] * 5
