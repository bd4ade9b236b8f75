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
from ferrule.runtime.loaders import register_loaders

if TYPE_CHECKING:
    from ferrule.runtime.allocator import use_allocator
    from ferrule.runtime.artefacts import ObjectCode, Origin, Stage
    from ferrule.runtime.dlpack import DLPackTensor, from_dlpack, tensor_spec
    from ferrule.runtime.engine import Engine
    from ferrule.runtime.errors import (
        CudaError,
        DivergenceError,
        LaunchError,
        LinkError,
        RaceError,
        StageError,
    )
    from ferrule.runtime.export import export_library
    from ferrule.runtime.function import (
        Function,
        load_function,
        make_function,
        why_generic_calls,
    )
    from ferrule.runtime.linker import find_runtime_libraries
    from ferrule.runtime.loading import load_module
    from ferrule.runtime.metadata import Metadata
    from ferrule.runtime.modules import Module
    from ferrule.runtime.objectfile import ObjectFileError
    from ferrule.runtime.registry import get_global_func, register_global_func
    from ferrule.runtime.typeinfo import TypeInfo, type_info
    from ferrule.specs import (
        AddressSpace,
        make_fake_compact_tensor,
        make_fake_stream,
        make_fake_tensor,
        make_ptr,
        nullptr,
    )

__all__ = [
    "AddressSpace",
    "CudaError",
    "DLPackTensor",
    "DivergenceError",
    "Engine",
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
        "DLPackTensor": "ferrule.runtime.dlpack",
        "DivergenceError": "ferrule.runtime.errors",
        "RaceError": "ferrule.runtime.errors",
        "Engine": "ferrule.runtime.engine",
        "Function": "ferrule.runtime.function",
        "LaunchError": "ferrule.runtime.errors",
        "LinkError": "ferrule.runtime.errors",
        "Metadata": "ferrule.runtime.metadata",
        "Module": "ferrule.runtime.modules",
        "ObjectCode": "ferrule.runtime.artefacts",
        "ObjectFileError": "ferrule.runtime.objectfile",
        "Origin": "ferrule.runtime.artefacts",
        "Stage": "ferrule.runtime.artefacts",
        "StageError": "ferrule.runtime.errors",
        "TypeInfo": "ferrule.runtime.typeinfo",
        "export_library": "ferrule.runtime.export",
        "find_runtime_libraries": "ferrule.runtime.linker",
        "from_dlpack": "ferrule.runtime.dlpack",
        "get_global_func": "ferrule.runtime.registry",
        "register_global_func": "ferrule.runtime.registry",
        "load_function": "ferrule.runtime.function",
        "load_module": "ferrule.runtime.loading",
        "make_fake_compact_tensor": "ferrule.specs",
        "make_fake_stream": "ferrule.specs",
        "make_fake_tensor": "ferrule.specs",
        "make_function": "ferrule.runtime.function",
        "make_ptr": "ferrule.specs",
        "nullptr": "ferrule.specs",
        "tensor_spec": "ferrule.runtime.dlpack",
        "type_info": "ferrule.runtime.typeinfo",
        "use_allocator": "ferrule.runtime.allocator",
        "why_generic_calls": "ferrule.runtime.function",
    }
)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)


register_error_kinds()
register_loaders()
