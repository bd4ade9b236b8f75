"""Layouts and numbers of the ABI against the C headers that are installed."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import sysconfig
from pathlib import Path

import numpy as np
import pytest
import tvm_ffi
from tvm_ffi import libinfo

from ferrule.compiler.support import typetable
from ferrule.runtime.abi import DeviceType, DTypeCode, TypeIndex
from ferrule.runtime.llvm import layouts
from ferrule.runtime.llvm.layouts import Field, Layout, View

# Fields whose path in C is another: a union's member needs none, a view of several fields has none.
C_PATHS = {
    "TVMFFIAny": {"head": "type_index"},
    "TVMFFIObject": {},
    "TVMFFIByteArray": {},
    "TVMFFIShapeCell": {},
    "TVMFFISeqCell": {},
    "DLTensor": {
        "device_type": "device.device_type",
        "device_id": "device.device_id",
        "dtype_code": "dtype.code",
        "dtype_bits": "dtype.bits",
        "dtype_lanes": "dtype.lanes",
    },
    "DLManagedTensorVersioned": {
        "version_major": "version.major",
        "version_minor": "version.minor",
        "dl": "dl_tensor",
    },
    "TVMFFITypeInfo": {},
    "TVMFFIFieldInfo": {},
    "TVMFFIMethodInfo": {},
    "TVMFFITypeAttrColumn": {},
}
LAYOUTS = [
    layouts.ANY,
    layouts.OBJECT,
    layouts.BYTE_ARRAY,
    layouts.SHAPE,
    layouts.SEQ,
    layouts.DLTENSOR,
    layouts.MANAGED_TENSOR,
    typetable.TYPE_INFO,
    typetable.FIELD_INFO,
    typetable.METHOD_INFO,
    typetable.TYPE_ATTR_COLUMN,
]
WHOLE = {*LAYOUTS} - {layouts.SEQ}

DEVICE_NAMES = {
    DeviceType.CUDA_HOST: "kDLCUDAHost",
    DeviceType.OPENCL: "kDLOpenCL",
    DeviceType.VULKAN: "kDLVulkan",
    DeviceType.METAL: "kDLMetal",
    DeviceType.ROCM_HOST: "kDLROCMHost",
    DeviceType.EXT_DEV: "kDLExtDev",
    DeviceType.CUDA_MANAGED: "kDLCUDAManaged",
    DeviceType.ONE_API: "kDLOneAPI",
    DeviceType.WEBGPU: "kDLWebGPU",
    DeviceType.HEXAGON: "kDLHexagon",
    DeviceType.MAIA: "kDLMAIA",
    DeviceType.TRN: "kDLTrn",
}
CODE_NAMES = {
    DTypeCode.UINT: "kDLUInt",
    DTypeCode.OPAQUE_HANDLE: "kDLOpaqueHandle",
}


def _camel(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


def _type_index_name(index: TypeIndex) -> str:
    special = {"OBJECT_RVALUE_REF": "ObjectRValueRef", "DLTENSOR_PTR": "DLTensorPtr"}
    return "kTVMFFI" + special.get(index.name, _camel(index.name))


def _dtype_name(code: DTypeCode) -> str:
    found = re.fullmatch(r"(FLOAT\d)_(.*)", code.name)
    if found:
        return f"kDL{found[1].capitalize()}_{found[2].lower()}"
    return CODE_NAMES.get(code, "kDL" + code.name.capitalize())


def _wanted() -> dict[str, int]:
    """What C must say: expression → number."""
    wanted: dict[str, int] = {}
    for layout in LAYOUTS:
        for name in layout.names:
            path = C_PATHS[layout.name].get(name, name)
            wanted[f"offsetof({layout.name}, {path})"] = layout.offset(name)
    wanted |= {f"sizeof({layout.name})": layout.size for layout in LAYOUTS if layout in WHOLE}
    wanted |= {_type_index_name(index): index for index in TypeIndex}
    wanted |= {DEVICE_NAMES.get(d, f"kDL{d.name}"): d for d in DeviceType}
    wanted |= {_dtype_name(code): code for code in DTypeCode}
    error = {"kind": "kind", "message": "message", "backtrace": "backtrace"}
    for name, path in error.items():
        wanted[f"offsetof(TVMFFIErrorCell, {path})"] = layouts.ERROR_CELL.offset(name)
    return wanted


def _numbers_from_c(folder: Path, expressions: list[str]) -> dict[str, int]:
    lines = [f'  printf("%lld\\n", (long long)({expression}));' for expression in expressions]
    source = folder / "layouts.c"
    body = "\n".join(lines)
    source.write_text(
        "#include <stddef.h>\n#include <stdio.h>\n#include <tvm/ffi/c_api.h>\n"
        f"int main(void) {{\n{body}\n  return 0;\n}}\n"
    )
    compiler = os.environ.get("CC") or next(c for c in ("cc", "gcc", "clang") if shutil.which(c))
    program = folder / "layouts"
    includes = [f"-I{path}" for path in libinfo.include_paths()]
    subprocess.run([*compiler.split(), *includes, "-o", program, source], check=True)
    printed = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    return dict(zip(expressions, map(int, printed.split()), strict=True))


def _known_here(expressions: list[str]) -> list[str]:
    """Without the names that the installed headers, which may be older, do not have."""
    folders = [Path(path) for path in libinfo.include_paths()]
    text = "".join(
        path.read_text()
        for folder in folders
        for path in (folder / "tvm/ffi/c_api.h", folder / "dlpack/dlpack.h")
        if path.exists()
    )
    return [e for e in expressions if all(word in text for word in re.findall(r"\bk\w+|TVM\w+", e))]


@pytest.mark.needs_cc
def test_layouts_and_numbers_are_those_of_the_headers(tmp_path: Path) -> None:
    wanted = _wanted()
    known = _known_here(list(wanted))
    assert {e for e in wanted if e not in known} <= {"offsetof(TVMFFISeqCell, data)"}
    found = _numbers_from_c(tmp_path, known)
    assert found == {expression: int(wanted[expression]) for expression in known}


def test_tensor_object_is_a_dltensor_behind_a_header() -> None:
    assert layouts.TENSOR_OBJECT.offset("dl") == 24
    assert layouts.TENSOR_OBJECT.offset("dl.shape") == 24 + layouts.DLTENSOR.offset("shape")
    tensor = tvm_ffi.from_dlpack(np.zeros((3, 5), np.float32))
    handle = tensor.__chandle__()
    ndim = ctypes.c_int32.from_address(handle + layouts.TENSOR_OBJECT.offset("dl.ndim"))
    kind = ctypes.c_int32.from_address(handle + layouts.TENSOR_OBJECT.offset("header.type_index"))
    assert (ndim.value, kind.value) == (2, TypeIndex.TENSOR)


def test_python_objects_are_where_the_gate_reads_them() -> None:
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        pytest.skip("a free-threaded interpreter has another object header")
    value = np.zeros((2, 3))
    kind = ctypes.c_uint64.from_address(id(value) + layouts.PY_OBJECT.offset("ob_type"))
    data = ctypes.c_uint64.from_address(id(value) + layouts.PY_ARRAY.offset("data"))
    ndim = ctypes.c_int32.from_address(id(value) + layouts.PY_ARRAY.offset("nd"))
    flags = ctypes.c_int32.from_address(id(value) + layouts.PY_ARRAY.offset("flags"))
    assert (kind.value, data.value) == (id(np.ndarray), value.ctypes.data)
    assert (ndim.value, flags.value) == (2, value.flags.num)
    assert layouts.PY_OBJECT.size == object.__basicsize__


def test_padding_follows_the_rules_of_c() -> None:
    layout = Layout(
        "S",
        [
            Field("a", layouts.I8),
            Field("b", layouts.I32),
            View("b_low", "b", layouts.I16),
            Field("c", layouts.I16),
            Field("d", layouts.F64),
            Field("e", layouts.I8),
        ],
    )
    assert [layout.offset(name) for name in layout.names] == [0, 4, 4, 8, 16, 24]
    assert (layout.size, layout.align) == (32, 8)


def test_unknown_fields_are_named() -> None:
    with pytest.raises(KeyError, match="DLTensor has no field 'shapes', only data"):
        layouts.DLTENSOR.offset("shapes")
    with pytest.raises(KeyError, match="DLTensor.ndim is no struct"):
        layouts.DLTENSOR.offset("ndim.x")
    with pytest.raises(ValueError, match="two fields named a"):
        Layout("S", [Field("a", layouts.I8), Field("a", layouts.I8)])
