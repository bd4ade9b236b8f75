"""The frame's structs against XLA's header, and handlers in libraries without ferrule."""

from __future__ import annotations

import ctypes
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
from ferrule import specs
from ferrule.compiler.operators.jax import frames
from ferrule.compiler.operators.jax.handler import handler_module
from ferrule.compiler.operators.jax.plans import Plan, plan_of
from ferrule.compiler.operators.jax.words import NAMES
from ferrule.runtime.errors import StageError
from ferrule.runtime.linking.engine import Engine, host_triple
from ferrule.runtime.llvm.layouts import DLTENSOR, Layout, size_of
from ferrule.runtime.llvm.native import compile_native

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


# ---- a frame without XLA ----

_POINTER = ctypes.c_void_p
_OF_API = ctypes.CFUNCTYPE(_POINTER, _POINTER)
_TARGET = ctypes.CFUNCTYPE(ctypes.c_int32, _POINTER, _POINTER, ctypes.c_int32, _POINTER)


class Struct:
    """One of XLA's structs in memory, its fields by their names."""

    def __init__(self, layout: Layout, address: int | None = None, **values: int) -> None:
        self.layout = layout
        self.memory = ctypes.create_string_buffer(layout.size)
        self.address = ctypes.addressof(self.memory) if address is None else address
        for name, value in values.items():
            self[name.replace("__", ".")] = value

    def _word(self, name: str) -> Any:
        kind = ctypes.c_uint64 if size_of(self.layout.type_of(name)) == 8 else ctypes.c_int32
        return kind.from_address(self.address + self.layout.offset(name))

    def __getitem__(self, name: str) -> int:
        return int(self._word(name).value)

    def __setitem__(self, name: str, value: int) -> None:
        self._word(name).value = value


class Frames:
    """A stand-in for XLA: makes frames, and keeps the errors that handlers make."""

    def __init__(self, major: int = 0, minor: int = 3) -> None:
        self.errors: list[tuple[int, str]] = []
        self.kept: list[Any] = []
        functions = {
            "XLA_FFI_Error_Create": self._create,
            "XLA_FFI_Stream_Get": self._stream,
            "XLA_FFI_DeviceOrdinal_Get": self._ordinal,
        }
        self.fails = False
        self.api = Struct(frames.API, api_version__major_version=major)
        self.api["api_version.minor_version"] = minor
        for name, answer in functions.items():
            self.kept.append(_OF_API(answer))
            self.api[name] = ctypes.cast(self.kept[-1], _POINTER).value or 0

    def _create(self, address: int) -> int:
        made = Struct(frames.ERROR_CREATE, address)
        self.errors.append((made["errc"], ctypes.string_at(made["message"]).decode()))
        return 0xE0

    def _stream(self, address: int) -> int:
        Struct(frames.STREAM_GET, address)["stream"] = 0x5000
        return 0xBAD if self.fails else 0

    def _ordinal(self, address: int) -> int:
        Struct(frames.ORDINAL_GET, address)["device_ordinal"] = 3
        return 0

    def _list(self, addresses: list[int]) -> int:
        self.kept.append((ctypes.c_uint64 * max(len(addresses), 1))(*addresses))
        return ctypes.addressof(self.kept[-1])

    def buffer(self, data: int, *dims: int) -> int:
        made = Struct(frames.BUFFER, dtype=11, data=data, rank=len(dims), dims=self._list([*dims]))
        self.kept.append(made)
        return made.address

    def frame(self, args: list[int], rets: list[int]) -> Struct:
        made = Struct(frames.FRAME, api=self.api.address, stage=frames.EXECUTE)
        for name, listed, given in (("args", "args", args), ("rets", "rets", rets)):
            made[f"{name}.size"], made[f"{name}.{listed}"] = len(given), self._list(given)
        return made


def loaded(plan: Plan, target: Any) -> tuple[Any, Engine]:
    """The handler as a function in C, and what keeps it."""
    code = compile_native(
        "jax_call", handler_module(plan, "__tvm_ffi_jax_call", "t", host_triple())
    )
    engine = Engine.load(code, {"t": ctypes.cast(target, _POINTER).value or 0})
    return _OF_API(engine.address("__tvm_ffi_jax_call")), engine


def gpu_plan() -> Plan:
    n = fe.sym_int()
    x, y = (specs.Tensor(name, (n, 2), "float32", device="cuda") for name in "xy")
    return plan_of(specs.Signature("f", (x, y, specs.Stream("s"), specs.EnvStream("e"))), ["y"])


def test_a_handler_for_a_gpu_gives_xlas_stream_and_device() -> None:
    seen: list[Any] = []
    current = ctypes.CDLL(None).TVMFFIEnvGetStream
    current.restype, current.argtypes = _POINTER, [ctypes.c_int32] * 2

    def run(_: int, args: int, count: int, result: int) -> int:
        values = (ctypes.c_uint64 * (2 * count)).from_address(args)
        tensors = [Struct(DLTENSOR, values[2 * i + 1]) for i in range(2)]
        for each in tensors:
            sizes = [(ctypes.c_int64 * 2).from_address(each[name])[:] for name in _SIZES]
            seen.append((each["data"], each["device_type"], each["device_id"], *sizes))
        seen.append((values[4], values[5], current(2, 3)))
        return 0

    target, xla = _TARGET(run), Frames()
    handler, _engine = loaded(gpu_plan(), target)
    frame = xla.frame([xla.buffer(0x100, 4, 2)], [xla.buffer(0x100, 4, 2), xla.buffer(0x200, 4, 2)])
    assert handler(frame.address) is None
    expected = [(at, 2, 3, [4, 2], [2, 1]) for at in (0x100, 0x200)]
    assert seen == [*expected, (4, 0x5000, 0x5000)]
    assert current(2, 3) != 0x5000, "the stream of others is back"
    other = xla.frame([xla.buffer(0x300, 4, 2)], [xla.buffer(0x100, 4, 2), xla.buffer(0x200, 4, 2)])
    assert handler(other.address) == 0xE0
    assert xla.errors == [(3, "f: x is written, so the call needs input_output_aliases={0: 0}")]
    xla.fails = True
    assert handler(frame.address) == 0xBAD
    assert len(seen) == 3


_SIZES = ("shape", "strides")


@pytest.mark.parametrize(("theirs", "said"), [(0, 0), (1, 1), (3, 3), (9, 3), (None, 1)])
def test_a_handler_says_a_version_that_xla_takes(theirs: int | None, said: int) -> None:
    handler, _engine = loaded(gpu_plan(), _TARGET(lambda *_: -1))
    xla = Frames(minor=theirs or 0)
    metadata = Struct(frames.METADATA, api_version__major_version=7, traits=9)
    asked = Struct(frames.METADATA_OF, metadata=metadata.address)
    asked["extension_base.type"] = frames.METADATA_EXTENSION
    # Behind an extension that nobody knows.
    unknown = Struct(frames.EXTENSION, type=77, next=asked.address)
    frame = xla.frame([], [])
    frame["extension_start"] = unknown.address
    if theirs is None:
        frame["api"] = 0
    assert handler(frame.address) is None
    versions = [metadata[f"api_version.{each}_version"] for each in ("major", "minor")]
    assert (versions, metadata["traits"]) == ([0, said], 0)


def test_other_stages_do_nothing() -> None:
    handler, _engine = loaded(gpu_plan(), _TARGET(lambda *_: -1))
    frame = Frames().frame([], [])
    frame["stage"] = 0
    assert handler(frame.address) is None


def test_a_rank_that_no_parameter_has_is_left_to_the_function() -> None:
    seen: list[Any] = []

    def run(_: int, args: int, count: int, result: int) -> int:
        tensor = Struct(DLTENSOR, (ctypes.c_uint64 * 2).from_address(args)[1])
        seen.append((tensor["ndim"], tensor["strides"]))
        return 0

    x = specs.Tensor("x", (fe.sym_int(), 2), "float32", read_only=True)
    target, xla = _TARGET(run), Frames()
    handler, _engine = loaded(plan_of(specs.Signature("f", (x,))), target)
    for dims in ((), (3,), (3, 2, 1)):
        handler(xla.frame([xla.buffer(0x100, *dims)], []).address)
    assert seen == [(0, 0), (1, 0), (3, 0)]


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
refused("scaled: expected the attribute factor to be a float", lambda: call(x, factor="2"))
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


def test_no_object_hides_another(tmp_path: Path) -> None:
    from ferrule.runtime.binaries.archive import read_archive

    path = tmp_path / "x.a"
    function("doubled").export_library(path, "xla_handler", xla_handler="h")
    assert len([*read_archive(path.read_bytes())]) == 2
