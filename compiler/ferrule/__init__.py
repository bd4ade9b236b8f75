"""ferrule: kernels become checked TVM-FFI functions.

    import ferrule as fe

`fe.kernel` and `fe.jit` mark functions, `fe.compile` compiles them for fake tensors.  Everything
is imported on first use: `import ferrule` loads nothing but this table.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import TYPE_CHECKING, Any

__path__ = pkgutil.extend_path(__path__, __name__)

if TYPE_CHECKING:
    from ferrule import runtime as runtime
    from ferrule import specs as specs
    from ferrule.compiler.errors import CompileError as CompileError
    from ferrule.compiler.options import Options as Options
    from ferrule.language import arch as arch
    from ferrule.language import maths as math  # noqa: F401
    from ferrule.language.compilation import compile as compile
    from ferrule.language.decorators import jit as jit
    from ferrule.language.decorators import kernel as kernel
    from ferrule.language.faces import Constexpr as Constexpr
    from ferrule.language.faces import Coord as Coord
    from ferrule.language.faces import IntTuple as IntTuple
    from ferrule.language.faces import Pointer as Pointer
    from ferrule.language.faces import Shape as Shape
    from ferrule.language.faces import Stride as Stride
    from ferrule.language.faces import Tensor as Tensor
    from ferrule.language.faces import Tile as Tile
    from ferrule.language.faces import range_constexpr as range_constexpr
    from ferrule.runtime import Function as Function
    from ferrule.runtime import LaunchError as LaunchError
    from ferrule.runtime import from_dlpack as from_dlpack
    from ferrule.specs import AddressSpace as AddressSpace
    from ferrule.specs import BFloat16 as BFloat16
    from ferrule.specs import Boolean as Boolean
    from ferrule.specs import Complex64 as Complex64
    from ferrule.specs import Complex128 as Complex128
    from ferrule.specs import Float4E2M1FN as Float4E2M1FN
    from ferrule.specs import Float6E2M3FN as Float6E2M3FN
    from ferrule.specs import Float6E3M2FN as Float6E3M2FN
    from ferrule.specs import Float8E3M4 as Float8E3M4
    from ferrule.specs import Float8E4M3 as Float8E4M3
    from ferrule.specs import Float8E4M3B11FNUZ as Float8E4M3B11FNUZ
    from ferrule.specs import Float8E4M3FN as Float8E4M3FN
    from ferrule.specs import Float8E4M3FNUZ as Float8E4M3FNUZ
    from ferrule.specs import Float8E5M2 as Float8E5M2
    from ferrule.specs import Float8E5M2FNUZ as Float8E5M2FNUZ
    from ferrule.specs import Float8E8M0FNU as Float8E8M0FNU
    from ferrule.specs import Float16 as Float16
    from ferrule.specs import Float32 as Float32
    from ferrule.specs import Float64 as Float64
    from ferrule.specs import Int4 as Int4
    from ferrule.specs import Int8 as Int8
    from ferrule.specs import Int16 as Int16
    from ferrule.specs import Int32 as Int32
    from ferrule.specs import Int64 as Int64
    from ferrule.specs import Numeric as Numeric
    from ferrule.specs import Uint4 as Uint4
    from ferrule.specs import Uint8 as Uint8
    from ferrule.specs import Uint16 as Uint16
    from ferrule.specs import Uint32 as Uint32
    from ferrule.specs import Uint64 as Uint64
    from ferrule.specs import ceil_div as ceil_div
    from ferrule.specs import make_fake_compact_tensor as make_fake_compact_tensor
    from ferrule.specs import make_fake_stream as make_fake_stream
    from ferrule.specs import make_fake_tensor as make_fake_tensor
    from ferrule.specs import make_ptr as make_ptr
    from ferrule.specs import nullptr as nullptr
    from ferrule.specs import sym_int as sym_int
    from ferrule.specs import sym_int32 as sym_int32
    from ferrule.specs import sym_int64 as sym_int64
    from ferrule.specs._version import __version__ as __version__

_SPECS = (
    "AddressSpace make_fake_stream make_ptr nullptr "
    "BFloat16 Boolean Complex128 Complex64 Float16 Float32 Float4E2M1FN Float64 Float6E2M3FN "
    "Float6E3M2FN Float8E3M4 Float8E4M3 Float8E4M3B11FNUZ Float8E4M3FN Float8E4M3FNUZ Float8E5M2 "
    "Float8E5M2FNUZ Float8E8M0FNU Int16 Int32 Int4 Int64 Int8 Numeric Uint16 Uint32 Uint4 Uint64 "
    "Uint8 ceil_div make_fake_compact_tensor make_fake_tensor sym_int sym_int32 sym_int64"
)
_FACES = "Constexpr Coord IntTuple Pointer Shape Stride Tensor Tile range_constexpr"
_ATTRIBUTES = {
    "__version__": ("ferrule.specs._version", "__version__"),
    "CompileError": ("ferrule.compiler.errors", "CompileError"),
    "Options": ("ferrule.compiler.options", "Options"),
    "Function": ("ferrule.runtime", "Function"),
    "LaunchError": ("ferrule.runtime", "LaunchError"),
    "from_dlpack": ("ferrule.runtime", "from_dlpack"),
    **{name: ("ferrule.language.faces", name) for name in _FACES.split()},
    "compile": ("ferrule.language.compilation", "compile"),
    "jit": ("ferrule.language.decorators", "jit"),
    "kernel": ("ferrule.language.decorators", "kernel"),
    **{name: ("ferrule.specs", name) for name in _SPECS.split()},
}
_MODULES = {
    "arch": "ferrule.language.arch",
    "math": "ferrule.language.maths",
    "runtime": "ferrule.runtime",
    "specs": "ferrule.specs",
}

__all__ = sorted([*_ATTRIBUTES, *_MODULES])


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        value: Any = importlib.import_module(_MODULES[name])
    elif name in _ATTRIBUTES:
        module, attribute = _ATTRIBUTES[name]
        value = getattr(importlib.import_module(module), attribute)
    else:
        raise AttributeError(f"module 'ferrule' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
