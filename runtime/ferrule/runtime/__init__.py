"""Loads objects and makes callable functions of them, or of addresses of C functions.

Importing this package imports tvm-ffi and teaches it ferrule's error kinds and how to load objects;
LLVM is imported when the first object is loaded. The package also has some names of
`ferrule.specs`, because programs written for CuTe import them from here. Each name is imported at
its first use.
"""

from __future__ import annotations

from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ferrule.runtime.errors import register_error_kinds
from ferrule.runtime.loading.loaders import register_loaders
from ferrule.specs.deferred import names_of

if TYPE_CHECKING:
    from ferrule.runtime.artefacts import ObjectCode, Origin, Stage
    from ferrule.runtime.binaries.metadata import Metadata
    from ferrule.runtime.binaries.objectfile import ObjectFileError
    from ferrule.runtime.calls.function import (
        Function,
        load_function,
        make_function,
        why_generic_calls,
    )
    from ferrule.runtime.calls.registry import get_global_func, register_global_func
    from ferrule.runtime.errors import (
        CudaError,
        DivergenceError,
        LaunchError,
        LinkError,
        RaceError,
        StageError,
    )
    from ferrule.runtime.exporting.export import export_library
    from ferrule.runtime.linking.engine import Engine
    from ferrule.runtime.linking.linker import find_runtime_libraries
    from ferrule.runtime.loading.files import load_module
    from ferrule.runtime.loading.modules import Module
    from ferrule.runtime.values.allocator import use_allocator
    from ferrule.runtime.values.dlpack import DLPackTensor, from_dlpack, tensor_spec
    from ferrule.runtime.values.typeinfo import TypeInfo, type_info
    from ferrule.specs import (
        AddressSpace,
        make_fake_compact_tensor,
        make_fake_stream,
        make_fake_tensor,
        make_ptr,
        nullptr,
    )
    from ferrule.specs.fakes import FakeTensor

__all__ = [
    "AddressSpace",
    "CudaError",
    "DLPackTensor",
    "DivergenceError",
    "Engine",
    "FakeTensor",
    "Function",
    "LaunchError",
    "LinkError",
    "Metadata",
    "Module",
    "ObjectCode",
    "ObjectFileError",
    "Origin",
    "RaceError",
    "Stage",
    "StageError",
    "TypeInfo",
    "export_library",
    "find_runtime_libraries",
    "from_dlpack",
    "get_global_func",
    "load_function",
    "load_module",
    "make_fake_compact_tensor",
    "make_fake_stream",
    "make_fake_tensor",
    "make_function",
    "make_ptr",
    "nullptr",
    "register_global_func",
    "tensor_spec",
    "type_info",
    "use_allocator",
    "why_generic_calls",
]

_HOMES = MappingProxyType(
    {
        "AddressSpace": "ferrule.specs",
        "CudaError": "ferrule.runtime.errors",
        "DLPackTensor": "ferrule.runtime.values.dlpack",
        "DivergenceError": "ferrule.runtime.errors",
        "RaceError": "ferrule.runtime.errors",
        "Engine": "ferrule.runtime.linking.engine",
        "Function": "ferrule.runtime.calls.function",
        "LaunchError": "ferrule.runtime.errors",
        "LinkError": "ferrule.runtime.errors",
        "Metadata": "ferrule.runtime.binaries.metadata",
        "Module": "ferrule.runtime.loading.modules",
        "ObjectCode": "ferrule.runtime.artefacts",
        "ObjectFileError": "ferrule.runtime.binaries.objectfile",
        "Origin": "ferrule.runtime.artefacts",
        "Stage": "ferrule.runtime.artefacts",
        "StageError": "ferrule.runtime.errors",
        "TypeInfo": "ferrule.runtime.values.typeinfo",
        "export_library": "ferrule.runtime.exporting.export",
        "find_runtime_libraries": "ferrule.runtime.linking.linker",
        "from_dlpack": "ferrule.runtime.values.dlpack",
        "get_global_func": "ferrule.runtime.calls.registry",
        "register_global_func": "ferrule.runtime.calls.registry",
        "load_function": "ferrule.runtime.calls.function",
        "load_module": "ferrule.runtime.loading.files",
        "make_fake_compact_tensor": "ferrule.specs",
        "make_fake_stream": "ferrule.specs",
        "FakeTensor": "ferrule.specs.fakes",
        "make_fake_tensor": "ferrule.specs",
        "make_function": "ferrule.runtime.calls.function",
        "make_ptr": "ferrule.specs",
        "nullptr": "ferrule.specs",
        "tensor_spec": "ferrule.runtime.values.dlpack",
        "type_info": "ferrule.runtime.values.typeinfo",
        "use_allocator": "ferrule.runtime.values.allocator",
        "why_generic_calls": "ferrule.runtime.calls.function",
    }
)


def _imported(module: str) -> Any:
    from ferrule.runtime.garbage import with_fewer_collections

    return with_fewer_collections(lambda: import_module(module))


__getattr__ = names_of(__name__, _HOMES, _imported)


def __dir__() -> list[str]:
    return sorted(__all__)


register_error_kinds()
register_loaders()
