"""The frame's structs against XLA's header, and handlers in libraries without ferrule."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from jax_kernels import compiled, doubled, function, vector

import ferrule as fe
from ferrule.compiler.operators.jax import frames
from ferrule.compiler.operators.jax.handler import handler_module
from ferrule.compiler.operators.jax.plans import plan_of
from ferrule.compiler.operators.jax.words import NAMES
from ferrule.runtime.errors import StageError
from ferrule.runtime.llvm.layouts import Layout

LAYOUTS = [each for each in vars(frames).values() if isinstance(each, Layout)]


@pytest.fixture(scope="module")
def header() -> Path:
    """The folder with XLA's header, which jaxlib has."""
    pytest.importorskip("jax", reason="JAX is not installed")
    return Path(importlib.import_module("jax.ffi").include_dir())


def run_c(source: str, includes: Path, folder: Path) -> str:
    program = folder / "program"
    (folder / "program.c").write_text(source, encoding="utf-8")
    command = [os.environ.get("CC", "cc"), f"-I{includes}", "-o", str(program)]
    subprocess.run([*command, str(folder / "program.c")], check=True)
    return subprocess.run([program], check=True, capture_output=True, text=True).stdout


@pytest.mark.needs_cc
def test_offsets_are_the_headers(header: Path, tmp_path: Path) -> None:
    text = (header / "xla/ffi/api/c_api.h").read_text(encoding="utf-8")
    if f"XLA_FFI_API_MINOR {frames.MINOR}\n" not in text:
        pytest.skip("the header is of another version, in which fields have other names")
    places = [(each, name) for each in LAYOUTS for name in each.names]
    asked = [f'printf("%zu\\n", offsetof(struct {x.name}, {n}));' for x, n in places]
    source = f"""#include <stdio.h>
#include "xla/ffi/api/c_api.h"
int main(void) {{ {" ".join(asked)} return 0; }}
"""
    found = [int(line) for line in run_c(source, header, tmp_path).split()]
    assert found == [layout.offset(name) for layout, name in places]


@pytest.mark.needs_cc
def test_numbers_are_the_headers(header: Path, tmp_path: Path) -> None:
    text = (header / "xla/ffi/api/c_api.h").read_text(encoding="utf-8")
    numbers = {int(n): name for name, n in re.findall(r"XLA_FFI_DataType_(\w+) = (\d+)", text)}
    short = {"bool": "PRED", "bfloat16": "BF16", "complex64": "C64", "complex128": "C128"}
    for number, name in NAMES.items():
        kind, bits = re.fullmatch(r"([a-z]+)(\w*)", name).groups()  # type: ignore[union-attr]
        spelled = {"int": "S", "uint": "U", "float": "F"}.get(kind, "") + bits.upper()
        spelled = spelled.replace("_", "")
        assert numbers[number] == short.get(name, spelled)
    constants = {
        "XLA_FFI_API_MAJOR": frames.MAJOR,
        "XLA_FFI_Extension_Metadata": frames.METADATA_EXTENSION,
        "XLA_FFI_ExecutionStage_EXECUTE": frames.EXECUTE,
        "XLA_FFI_AttrType_SCALAR": frames.SCALAR,
        "XLA_FFI_AttrType_STRING": frames.STRING,
        "XLA_FFI_Error_Create_Args_STRUCT_SIZE": frames.struct_size(frames.ERROR_CREATE),
        "XLA_FFI_Stream_Get_Args_STRUCT_SIZE": frames.struct_size(frames.STREAM_GET),
        **{f"XLA_FFI_Error_Code_{code.name}": int(code) for code in frames.Code},
    }
    asked = " ".join(f'printf("%d\\n", (int){name});' for name in constants)
    source = f"""#include <stdio.h>
#include "xla/ffi/api/c_api.h"
int main(void) {{ {asked} return 0; }}
"""
    assert [int(n) for n in run_c(source, header, tmp_path).split()] == [*constants.values()]


def test_a_handler_for_a_gpu_asks_for_the_stream() -> None:
    from ferrule import specs

    n = fe.sym_int()
    x, y = (specs.Tensor(name, (n,), "float32", device="cuda") for name in "xy")
    signature = specs.Signature("f", (x, y, specs.Stream("s"), specs.EnvStream("e")))
    plan = plan_of(signature, ["y"])
    assert [each.name for each in plan.given()] == ["x", "y"][:1]
    text = handler_module(plan, "handler", "target", "x86_64-unknown-linux-gnu")
    assert text.count('call i32 @"TVMFFIEnvSetStream"') == 2
    assert len(re.findall(r"call ptr %\"XLA_FFI_(?:Stream|DeviceOrdinal)_Get\"", text)) == 2


_PROGRAM = """
import ctypes, sys
import numpy as np
import tvm_ffi
import jax, jax.numpy as jnp

library = ctypes.CDLL(sys.argv[1])
jax.ffi.register_ffi_target("scaled", jax.ffi.pycapsule(library.scaled_in_xla), platform="cpu")
x = jnp.arange(3.0)
made = jax.ShapeDtypeStruct((3,), "float32")


def call(*arrays, made=made, **attributes):
    return jax.ffi.ffi_call("scaled", made)(*arrays, **attributes)


for factor in (np.float32(2), np.int8(2), 2, 2.0, np.uint32(2)):
    assert call(x, factor=factor).tolist() == [0.0, 2.0, 4.0], factor
assert jax.jit(lambda x: call(x, factor=True))(x).tolist() == [0.0, 1.0, 2.0]


def refused(wanted, run):
    try:
        jax.block_until_ready(run())
    except Exception as error:
        assert f"INVALID_ARGUMENT: {wanted}" in str(error), error
    else:
        raise AssertionError(wanted)


refused("scaled: expected the attributes factor, but got 0 attributes", lambda: call(x))
refused("scaled: expected the attributes factor, but one has another", lambda: call(x, f=2.0))
refused("scaled: expected the attributes factor, but one has another", lambda: call(x, fActor=2.0))
refused("scaled: expected the attribute factor to be a float", lambda: call(x, factor=np.arange(2)))
refused("TypeError: Mismatched type on argument #2", lambda: call(x, factor="2"))
refused("scaled: expected the arrays x, but got 2 arrays", lambda: call(x, x, factor=2.0))
refused(
    "scaled: expected the outputs y, but got 2 outputs",
    lambda: jax.ffi.ffi_call("scaled", (made, made))(x, factor=2.0),
)
half = x.astype("bfloat16")
refused("ValueError: Mismatched Tensor on argument #0", lambda: call(half, factor=2.0))
longer = jax.ShapeDtypeStruct((4,), "float32")
refused("ValueError: Mismatched y.shape[0] on", lambda: call(x, made=longer, factor=2.0))
refused("ValueError: Mismatched Tensor on argument #0", lambda: call(jnp.ones((2, 2)), factor=2.0))

jax.ffi.register_ffi_target("added", jax.ffi.pycapsule(ctypes.CDLL(sys.argv[2]).added_in_xla))
aliased = jax.ffi.ffi_call("added", made, input_output_aliases={0: 0})
assert aliased(x, by=3).tolist() == [3.0, 4.0, 5.0]
refused(
    "added: x is written, so the call needs input_output_aliases={0: 0}",
    lambda: jax.ffi.ffi_call("added", made)(x, by=3),
)
assert "ferrule" not in sys.modules
module = tvm_ffi.load_module(sys.argv[1])
assert module.scaled is not None
print("right")
"""


@pytest.mark.needs_cc
def test_a_library_has_a_handler(header: Path, tmp_path: Path) -> None:
    paths = [str(tmp_path / f"{name}.so") for name in ("scaled", "added")]
    function("scaled").export_library(paths[0], xla_handler="scaled_in_xla")
    function("added").export_library(paths[1], xla_handler="added_in_xla", out=[])
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, *paths],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.returncode) == ("right\n", 0), done.stderr


def test_exports_are_the_same_each_time(tmp_path: Path) -> None:
    for name in ("a.a", "b.a"):
        function("doubled").export_library(tmp_path / name, xla_handler="handler")
    assert (tmp_path / "a.a").read_bytes() == (tmp_path / "b.a").read_bytes()


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"xla_handler": "a b"}, ValueError, "xla_handler must be a C identifier"),
        ({"xla_handler": "__tvm_ffi_x"}, ValueError, "begins with neither __ nor ferrule_"),
        ({"xla_handler": 3}, TypeError, "xla_handler must be a name, but got 3"),
        ({"xla_handler": "h", "out": ["z"]}, ValueError, "out has 'z'"),
    ],
)
def test_what_no_library_has(
    options: dict[str, Any], kind: type[Exception], message: str, tmp_path: Path
) -> None:
    with pytest.raises(kind, match=message):
        function("doubled").export_library(tmp_path / "x.so", **options)
    assert not list(tmp_path.iterdir())


def test_a_loaded_function_is_exported_where_it_is_compiled(tmp_path: Path) -> None:
    v = vector()
    compiled(doubled, v, v).export_to_c(tmp_path / "doubled.o")
    loaded = fe.runtime.load_module(tmp_path / "doubled.o").doubled
    with pytest.raises(StageError, match=r"fe.jax_call"):
        loaded.export_library(tmp_path / "x.so", xla_handler="h")


def test_a_loaded_function_is_called(tmp_path: Path) -> None:
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    v = vector()
    compiled(doubled, v, v).export_to_c(tmp_path / "doubled.o")
    loaded = fe.runtime.load_module(tmp_path / "doubled.o").doubled
    assert fe.jax_call(loaded)(jax.numpy.ones(2)).tolist() == [2.0, 2.0]


def test_without_jax(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jax", None)
    monkeypatch.delitem(sys.modules, "jax.ffi", raising=False)
    with pytest.raises(ImportError, match=r"fe.jax_call needs jax .* pip install 'ferrule\[jax\]'"):
        fe.jax_call(function("doubled"))
