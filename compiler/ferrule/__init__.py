"""ferrule: kernels become checked TVM-FFI functions.

    import ferrule as fe

`fe.kernel` and `fe.jit` mark functions, `fe.compile` compiles them for fake tensors.  Everything
is imported on first use: `import ferrule` loads nothing but this table.  Where the environment's
variable FERRULE_GPU asks for an emulated GPU, it is there from then on.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
from typing import TYPE_CHECKING, Any

__path__ = pkgutil.extend_path(__path__, __name__)

if TYPE_CHECKING:
    from ferrule import cutlass as cutlass
    from ferrule import frontends as frontends
    from ferrule import runtime as runtime
    from ferrule import specs as specs
    from ferrule.compiler import cache as cache
    from ferrule.compiler.cuda.code import DeviceCode as DeviceCode
    from ferrule.compiler.errors import CompileError as CompileError
    from ferrule.compiler.operators.jax import jax_call as jax_call
    from ferrule.compiler.operators.torch import torch_op as torch_op
    from ferrule.compiler.option_objects import RDC as RDC
    from ferrule.compiler.option_objects import DeviceTarget as DeviceTarget
    from ferrule.compiler.option_objects import EnableAssertions as EnableAssertions
    from ferrule.compiler.option_objects import EnableTVMFFI as EnableTVMFFI
    from ferrule.compiler.option_objects import FrontendNext as FrontendNext
    from ferrule.compiler.option_objects import GenerateLineInfo as GenerateLineInfo
    from ferrule.compiler.option_objects import GPUArch as GPUArch
    from ferrule.compiler.option_objects import KeepCUBIN as KeepCUBIN
    from ferrule.compiler.option_objects import KeepPTX as KeepPTX
    from ferrule.compiler.option_objects import KeepSASS as KeepSASS
    from ferrule.compiler.option_objects import LinkLibraries as LinkLibraries
    from ferrule.compiler.option_objects import NvdisasmOptions as NvdisasmOptions
    from ferrule.compiler.option_objects import OptLevel as OptLevel
    from ferrule.compiler.option_objects import PtxasOptions as PtxasOptions
    from ferrule.compiler.option_objects import RemarkFilter as RemarkFilter
    from ferrule.compiler.option_objects import RemarkOutput as RemarkOutput
    from ferrule.compiler.options import Options as Options
    from ferrule.cutlass import testing as testing
    from ferrule.emulator.gpu import emulated_gpu as emulated_gpu
    from ferrule.frontends.triton import like as like
    from ferrule.language import writing as ir  # noqa: F401
    from ferrule.language.atoms import nvgpu as nvgpu
    from ferrule.language.atoms.copies import CopyAtom as CopyAtom
    from ferrule.language.atoms.copies import TiledCopy as TiledCopy
    from ferrule.language.atoms.copies import make_copy_atom as make_copy_atom
    from ferrule.language.atoms.copies import make_cotiled_copy as make_cotiled_copy
    from ferrule.language.atoms.copies import make_tiled_copy as make_tiled_copy
    from ferrule.language.atoms.copies import make_tiled_copy_D as make_tiled_copy_D
    from ferrule.language.atoms.copies import make_tiled_copy_S as make_tiled_copy_S
    from ferrule.language.atoms.copies import make_tiled_copy_tv as make_tiled_copy_tv
    from ferrule.language.atoms.mmas import MmaAtom as MmaAtom
    from ferrule.language.atoms.mmas import TiledMma as TiledMma
    from ferrule.language.atoms.mmas import make_mma_atom as make_mma_atom
    from ferrule.language.atoms.mmas import make_tiled_copy_A as make_tiled_copy_A
    from ferrule.language.atoms.mmas import make_tiled_copy_B as make_tiled_copy_B
    from ferrule.language.atoms.mmas import make_tiled_copy_C as make_tiled_copy_C
    from ferrule.language.atoms.mmas import make_tiled_copy_C_atom as make_tiled_copy_C_atom
    from ferrule.language.atoms.mmas import make_tiled_mma as make_tiled_mma
    from ferrule.language.compilation import compile as compile
    from ferrule.language.decorators import jit as jit
    from ferrule.language.decorators import kernel as kernel
    from ferrule.language.faces import arch as arch
    from ferrule.language.faces import maths as math  # noqa: F401
    from ferrule.language.faces import pipelines as pipeline  # noqa: F401
    from ferrule.language.faces import utils as utils
    from ferrule.language.faces.base import Constexpr as Constexpr
    from ferrule.language.faces.base import Coord as Coord
    from ferrule.language.faces.base import IntTuple as IntTuple
    from ferrule.language.faces.base import Pointer as Pointer
    from ferrule.language.faces.base import Shape as Shape
    from ferrule.language.faces.base import Stride as Stride
    from ferrule.language.faces.base import Tensor as Tensor
    from ferrule.language.faces.base import Tile as Tile
    from ferrule.language.faces.base import const_expr as const_expr
    from ferrule.language.faces.base import printf as printf
    from ferrule.language.faces.base import range as range
    from ferrule.language.faces.base import range_constexpr as range_constexpr
    from ferrule.language.faces.base import static_assert as static_assert
    from ferrule.language.faces.calls import call as call
    from ferrule.language.faces.calls import extern_func as extern_func
    from ferrule.language.faces.calls import import_func as import_func
    from ferrule.language.faces.calls import raise_error as raise_error
    from ferrule.language.faces.containers import Array as Array
    from ferrule.language.faces.containers import Dict as Dict
    from ferrule.language.faces.containers import List as List
    from ferrule.language.faces.containers import Map as Map
    from ferrule.language.faces.containers import Object as Object
    from ferrule.language.faces.containers import as_type as as_type
    from ferrule.language.faces.containers import make_object as make_object
    from ferrule.language.faces.pipelines.boxes import (
        make_layout_image_mask as make_layout_image_mask,
    )
    from ferrule.language.faces.pipelines.storage import struct as struct
    from ferrule.language.faces.printing import print_tensor as print_tensor
    from ferrule.language.faces.reductions import max as max
    from ferrule.language.faces.reductions import min as min
    from ferrule.language.faces.reductions import prod as prod
    from ferrule.language.faces.reductions import sum as sum
    from ferrule.language.faces.tensors import domain_offset as domain_offset
    from ferrule.language.faces.tensors import elem_less as elem_less
    from ferrule.language.faces.tensors import empty as empty
    from ferrule.language.faces.tensors import empty_like as empty_like
    from ferrule.language.faces.tensors import make_identity_tensor as make_identity_tensor
    from ferrule.language.faces.tensors import make_tensor as make_tensor
    from ferrule.language.faces.tensors import recast_ptr as recast_ptr
    from ferrule.language.faces.tensors import recast_tensor as recast_tensor
    from ferrule.language.faces.tensors import shrink as shrink
    from ferrule.language.faces.tensors import zeros as zeros
    from ferrule.language.faces.tiles import basic_copy as basic_copy
    from ferrule.language.faces.tiles import basic_copy_if as basic_copy_if
    from ferrule.language.faces.tiles import copy as copy
    from ferrule.language.faces.tiles import copy_atom_call as copy_atom_call
    from ferrule.language.faces.tiles import gemm as gemm
    from ferrule.language.faces.tiles import mma_atom_call as mma_atom_call
    from ferrule.language.faces.tiles import prefetch as prefetch
    from ferrule.language.faces.tuples import append_ones as append_ones
    from ferrule.language.faces.tuples import assume as assume
    from ferrule.language.faces.tuples import filter_tuple as filter_tuple
    from ferrule.language.faces.tuples import find as find
    from ferrule.language.faces.tuples import find_if as find_if
    from ferrule.language.faces.tuples import flatten_to_tuple as flatten_to_tuple
    from ferrule.language.faces.tuples import front as front
    from ferrule.language.faces.tuples import get_divisibility as get_divisibility
    from ferrule.language.faces.tuples import has_underscore as has_underscore
    from ferrule.language.faces.tuples import increment_coord as increment_coord
    from ferrule.language.faces.tuples import is_int_tuple as is_int_tuple
    from ferrule.language.faces.tuples import is_integer as is_integer
    from ferrule.language.faces.tuples import is_major as is_major
    from ferrule.language.faces.tuples import leading_dim as leading_dim
    from ferrule.language.faces.tuples import prepend_ones as prepend_ones
    from ferrule.language.faces.tuples import pretty_str as pretty_str
    from ferrule.language.faces.tuples import product_like as product_like
    from ferrule.language.faces.tuples import repeat as repeat
    from ferrule.language.faces.tuples import repeat_as_tuple as repeat_as_tuple
    from ferrule.language.faces.tuples import round_up as round_up
    from ferrule.language.faces.tuples import size_in_bytes as size_in_bytes
    from ferrule.language.faces.tuples import slice_and_offset as slice_and_offset
    from ferrule.language.faces.tuples import transform_apply as transform_apply
    from ferrule.language.faces.tuples import transform_leaf as transform_leaf
    from ferrule.language.faces.tuples import unwrap as unwrap
    from ferrule.language.faces.tuples import wrap as wrap
    from ferrule.language.faces.vectors import ReductionOp as ReductionOp
    from ferrule.language.faces.vectors import TensorSSA as TensorSSA
    from ferrule.language.faces.vectors import all_ as all_
    from ferrule.language.faces.vectors import any_ as any_
    from ferrule.language.faces.vectors import autovec_copy as autovec_copy
    from ferrule.language.faces.vectors import full as full
    from ferrule.language.faces.vectors import full_like as full_like
    from ferrule.language.faces.vectors import make_fragment as make_fragment
    from ferrule.language.faces.vectors import make_fragment_like as make_fragment_like
    from ferrule.language.faces.vectors import make_rmem_tensor as make_rmem_tensor
    from ferrule.language.faces.vectors import make_rmem_tensor_like as make_rmem_tensor_like
    from ferrule.language.faces.vectors import ones_like as ones_like
    from ferrule.language.faces.vectors import where as where
    from ferrule.language.faces.vectors import zeros_like as zeros_like
    from ferrule.language.layouts import ComposedLayout as ComposedLayout
    from ferrule.language.layouts import E as E
    from ferrule.language.layouts import Layout as Layout
    from ferrule.language.layouts import LayoutError as LayoutError
    from ferrule.language.layouts import ScaledBasis as ScaledBasis
    from ferrule.language.layouts import Swizzle as Swizzle
    from ferrule.language.layouts import append as append
    from ferrule.language.layouts import blocked_product as blocked_product
    from ferrule.language.layouts import coalesce as coalesce
    from ferrule.language.layouts import complement as complement
    from ferrule.language.layouts import composition as composition
    from ferrule.language.layouts import cosize as cosize
    from ferrule.language.layouts import crd2idx as crd2idx
    from ferrule.language.layouts import depth as depth
    from ferrule.language.layouts import dice as dice
    from ferrule.language.layouts import filter as filter
    from ferrule.language.layouts import filter_zeros as filter_zeros
    from ferrule.language.layouts import flat_divide as flat_divide
    from ferrule.language.layouts import flat_product as flat_product
    from ferrule.language.layouts import flatten as flatten
    from ferrule.language.layouts import get as get
    from ferrule.language.layouts import group_modes as group_modes
    from ferrule.language.layouts import idx2crd as idx2crd
    from ferrule.language.layouts import is_congruent as is_congruent
    from ferrule.language.layouts import is_static as is_static
    from ferrule.language.layouts import is_weakly_congruent as is_weakly_congruent
    from ferrule.language.layouts import left_inverse as left_inverse
    from ferrule.language.layouts import local_partition as local_partition
    from ferrule.language.layouts import local_tile as local_tile
    from ferrule.language.layouts import logical_divide as logical_divide
    from ferrule.language.layouts import logical_product as logical_product
    from ferrule.language.layouts import make_composed_layout as make_composed_layout
    from ferrule.language.layouts import make_identity_layout as make_identity_layout
    from ferrule.language.layouts import make_layout as make_layout
    from ferrule.language.layouts import make_layout_like as make_layout_like
    from ferrule.language.layouts import make_layout_tv as make_layout_tv
    from ferrule.language.layouts import make_ordered_layout as make_ordered_layout
    from ferrule.language.layouts import make_swizzle as make_swizzle
    from ferrule.language.layouts import max_common_layout as max_common_layout
    from ferrule.language.layouts import max_common_vector as max_common_vector
    from ferrule.language.layouts import nullspace as nullspace
    from ferrule.language.layouts import prepend as prepend
    from ferrule.language.layouts import product as product
    from ferrule.language.layouts import product_each as product_each
    from ferrule.language.layouts import raked_product as raked_product
    from ferrule.language.layouts import rank as rank
    from ferrule.language.layouts import recast_layout as recast_layout
    from ferrule.language.layouts import repeat_like as repeat_like
    from ferrule.language.layouts import right_inverse as right_inverse
    from ferrule.language.layouts import select as select
    from ferrule.language.layouts import shape as shape
    from ferrule.language.layouts import shape_div as shape_div
    from ferrule.language.layouts import size as size
    from ferrule.language.layouts import slice_ as slice_
    from ferrule.language.layouts import tile_to_shape as tile_to_shape
    from ferrule.language.layouts import tiled_divide as tiled_divide
    from ferrule.language.layouts import tiled_product as tiled_product
    from ferrule.language.layouts import tuple_cat as tuple_cat
    from ferrule.language.layouts import unflatten as unflatten
    from ferrule.language.layouts import zipped_divide as zipped_divide
    from ferrule.language.layouts import zipped_product as zipped_product
    from ferrule.language.layouts.pictures import draw as draw
    from ferrule.language.layouts.pictures import print_latex as print_latex
    from ferrule.language.layouts.pictures import print_latex_tv as print_latex_tv
    from ferrule.language.sourcetexts import from_source as from_source
    from ferrule.libraries.jobs import Job as Job
    from ferrule.libraries.library import Library as Library
    from ferrule.libraries.many import CompileAllError as CompileAllError
    from ferrule.libraries.many import compile_all as compile_all
    from ferrule.libraries.many import overload as overload
    from ferrule.libraries.recipes import Recipe as Recipe
    from ferrule.runtime import CudaError as CudaError
    from ferrule.runtime import DivergenceError as DivergenceError
    from ferrule.runtime import Function as Function
    from ferrule.runtime import LaunchError as LaunchError
    from ferrule.runtime import Module as Module
    from ferrule.runtime import RaceError as RaceError
    from ferrule.runtime import cuda as cuda
    from ferrule.runtime import export_library as export_library
    from ferrule.runtime import from_dlpack as from_dlpack
    from ferrule.runtime import get_global_func as get_global_func
    from ferrule.runtime import register_global_func as register_global_func
    from ferrule.runtime import type_info as type_info
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
    from ferrule.specs import TFloat32 as TFloat32
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
    from ferrule.specs import row_major as row_major
    from ferrule.specs import sym_dtype as sym_dtype
    from ferrule.specs import sym_int as sym_int
    from ferrule.specs import sym_int32 as sym_int32
    from ferrule.specs import sym_int64 as sym_int64
    from ferrule.specs._version import __version__ as __version__

_SPECS = (
    "AddressSpace make_fake_stream make_ptr nullptr "
    "BFloat16 Boolean Complex128 Complex64 Float16 Float32 Float4E2M1FN Float64 Float6E2M3FN "
    "Float6E3M2FN Float8E3M4 Float8E4M3 Float8E4M3B11FNUZ Float8E4M3FN Float8E4M3FNUZ Float8E5M2 "
    "Float8E5M2FNUZ Float8E8M0FNU Int16 Int32 Int4 Int64 Int8 Numeric TFloat32 Uint16 "
    "Uint32 Uint4 Uint64 Uint8 ceil_div make_fake_compact_tensor make_fake_tensor "
    "row_major sym_dtype "
    "sym_int sym_int32 sym_int64"
)
_FACES = (
    "Constexpr Coord IntTuple Pointer Shape Stride Tensor Tile const_expr printf range "
    "range_constexpr static_assert"
)
_LAYOUTS = (
    "ComposedLayout E Layout LayoutError ScaledBasis Swizzle append blocked_product coalesce "
    "complement composition cosize crd2idx depth dice filter filter_zeros flat_divide "
    "flat_product flatten get group_modes idx2crd is_congruent is_static is_weakly_congruent "
    "left_inverse local_partition local_tile logical_divide logical_product "
    "make_composed_layout make_identity_layout make_layout make_layout_like make_layout_tv "
    "make_ordered_layout make_swizzle max_common_layout max_common_vector nullspace prepend "
    "product product_each raked_product rank recast_layout repeat_like right_inverse select "
    "shape shape_div size slice_ tile_to_shape tiled_divide tiled_product tuple_cat unflatten "
    "zipped_divide zipped_product"
)
_COPIES = (
    "CopyAtom TiledCopy make_copy_atom make_cotiled_copy make_tiled_copy "
    "make_tiled_copy_D make_tiled_copy_S make_tiled_copy_tv"
)
_MMAS = (
    "MmaAtom TiledMma make_mma_atom make_tiled_copy_A make_tiled_copy_B "
    "make_tiled_copy_C make_tiled_copy_C_atom make_tiled_mma"
)
_TILES = "basic_copy basic_copy_if copy copy_atom_call gemm mma_atom_call prefetch"
_REDUCTIONS = "max min prod sum"
_VECTORS = (
    "ReductionOp TensorSSA all_ any_ autovec_copy full full_like make_fragment make_fragment_like "
    "make_rmem_tensor make_rmem_tensor_like ones_like where zeros_like"
)
_ALLOCATION = "empty empty_like shrink zeros"
_CALLS = "call extern_func import_func raise_error"
_CONTAINERS = "Array Dict List Map Object as_type make_object"
_OPTIONS = (
    "DeviceTarget EnableAssertions EnableTVMFFI FrontendNext GPUArch GenerateLineInfo "
    "KeepCUBIN KeepPTX KeepSASS LinkLibraries NvdisasmOptions OptLevel PtxasOptions "
    "RDC RemarkFilter RemarkOutput"
)
_TUPLES = (
    "append_ones assume filter_tuple find find_if flatten_to_tuple front "
    "get_divisibility has_underscore increment_coord is_int_tuple is_integer is_major "
    "leading_dim prepend_ones pretty_str product_like repeat repeat_as_tuple round_up "
    "size_in_bytes slice_and_offset transform_apply transform_leaf unwrap wrap"
)
_VIEWS = "domain_offset elem_less make_identity_tensor make_tensor recast_ptr recast_tensor"
_CUTE = (
    "Float GridConstant Integer SymInt and_ as_numeric basis_get basis_value dtype dynamic_expr "
    "get_nonswizzle_portion get_swizzle_portion not_ or_ select_"
)
_MATHS = (
    "abs absf absi acos acosh add asin asinh atan atan2 atanh cbrt ceil clamp "
    "copysign cos cosh div erf erfc exp exp2 expm1 fabs floor fma fmod fpowi ipowi "
    "isfinite isinf isnan isnormal log log10 log1p log2 mul neg pow rcp rem round "
    "roundeven rsqrt sin sincos sinh sqrt sub tan tanh trunc"
)
_DIVISORS = (
    "FastDivmodDivisor FastDivmodDivisorV2 fast_divmod_create_divisor fast_divmod_create_divisor_v2"
)
_ONLY_CUTE = {
    **{name: ("ferrule.language.faces.cute", name) for name in _CUTE.split()},
    **{name: ("ferrule.language.faces.maths", name) for name in _MATHS.split()},
    **{name: ("ferrule.language.faces.pipelines.divisors", name) for name in _DIVISORS.split()},
    "union": ("ferrule.language.faces.pipelines.storage", "union"),
}
"""Names for programs of CuTe DSL alone, `import ferrule as cute`: no star import has them."""
_ATTRIBUTES = {
    "__version__": ("ferrule.specs._version", "__version__"),
    "CompileError": ("ferrule.compiler.errors", "CompileError"),
    "DeviceCode": ("ferrule.compiler.cuda.code", "DeviceCode"),
    "Options": ("ferrule.compiler.options", "Options"),
    "CudaError": ("ferrule.runtime", "CudaError"),
    "DivergenceError": ("ferrule.runtime", "DivergenceError"),
    "Function": ("ferrule.runtime", "Function"),
    "LaunchError": ("ferrule.runtime", "LaunchError"),
    "CompileAllError": ("ferrule.libraries.many", "CompileAllError"),
    "compile_all": ("ferrule.libraries.many", "compile_all"),
    "Job": ("ferrule.libraries.jobs", "Job"),
    "Recipe": ("ferrule.libraries.recipes", "Recipe"),
    "Library": ("ferrule.libraries.library", "Library"),
    "Module": ("ferrule.runtime", "Module"),
    "RaceError": ("ferrule.runtime", "RaceError"),
    "export_library": ("ferrule.runtime", "export_library"),
    "emulated_gpu": ("ferrule.emulator.gpu", "emulated_gpu"),
    "like": ("ferrule.frontends.triton", "like"),
    "from_dlpack": ("ferrule.runtime", "from_dlpack"),
    "get_global_func": ("ferrule.runtime", "get_global_func"),
    "register_global_func": ("ferrule.runtime", "register_global_func"),
    "jax_call": ("ferrule.compiler.operators.jax", "jax_call"),
    "torch_op": ("ferrule.compiler.operators.torch", "torch_op"),
    "type_info": ("ferrule.runtime", "type_info"),
    **{name: ("ferrule.language.faces.base", name) for name in _FACES.split()},
    **{name: ("ferrule.language.layouts", name) for name in _LAYOUTS.split()},
    **{name: ("ferrule.language.atoms.copies", name) for name in _COPIES.split()},
    **{name: ("ferrule.language.atoms.mmas", name) for name in _MMAS.split()},
    **{name: ("ferrule.language.faces.tiles", name) for name in _TILES.split()},
    **{name: ("ferrule.language.faces.reductions", name) for name in _REDUCTIONS.split()},
    **{name: ("ferrule.language.faces.vectors", name) for name in _VECTORS.split()},
    **{name: ("ferrule.language.faces.tensors", name) for name in _ALLOCATION.split()},
    **{name: ("ferrule.language.faces.tuples", name) for name in _TUPLES.split()},
    **{name: ("ferrule.compiler.option_objects", name) for name in _OPTIONS.split()},
    **{name: ("ferrule.language.faces.calls", name) for name in _CALLS.split()},
    **{name: ("ferrule.language.faces.containers", name) for name in _CONTAINERS.split()},
    **{name: ("ferrule.language.faces.tensors", name) for name in _VIEWS.split()},
    "compile": ("ferrule.language.compilation", "compile"),
    "struct": ("ferrule.language.faces.pipelines.storage", "struct"),
    "make_layout_image_mask": ("ferrule.language.faces.pipelines.boxes", "make_layout_image_mask"),
    "draw": ("ferrule.language.layouts.pictures", "draw"),
    "print_latex": ("ferrule.language.layouts.pictures", "print_latex"),
    "print_latex_tv": ("ferrule.language.layouts.pictures", "print_latex_tv"),
    "print_tensor": ("ferrule.language.faces.printing", "print_tensor"),
    "from_source": ("ferrule.language.sourcetexts", "from_source"),
    "jit": ("ferrule.language.decorators", "jit"),
    "kernel": ("ferrule.language.decorators", "kernel"),
    "overload": ("ferrule.libraries.many", "overload"),
    **{name: ("ferrule.specs", name) for name in _SPECS.split()},
}
_MODULES = {
    "cache": "ferrule.compiler.cache",
    "arch": "ferrule.language.faces.arch",
    "cuda": "ferrule.runtime.cuda",
    "cutlass": "ferrule.cutlass",
    "frontends": "ferrule.frontends",
    "nvgpu": "ferrule.language.atoms.nvgpu",
    "math": "ferrule.language.faces.maths",
    "pipeline": "ferrule.language.faces.pipelines",
    "utils": "ferrule.language.faces.utils",
    "ir": "ferrule.language.writing",
    "runtime": "ferrule.runtime",
    "specs": "ferrule.specs",
    "testing": "ferrule.cutlass.testing",
}

_OF_CUTE = {
    "arch": "cutlass.cute.arch",
    "math": "cutlass.cute.math",
    "nvgpu": "cutlass.cute.nvgpu",
    "pipeline": "cutlass.pipeline",
    "utils": "cutlass.utils",
}
"""Modules that CuTe DSL has, too, and where it has them."""

__all__ = sorted([*_ATTRIBUTES, *_MODULES])


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        value: Any = _imported(_MODULES[name])
        if name in _OF_CUTE:
            _say_what_is_missing(value, _OF_CUTE[name])
    elif name in _ATTRIBUTES or name in _ONLY_CUTE:
        module, attribute = _ATTRIBUTES.get(name) or _ONLY_CUTE[name]
        value = getattr(_imported(module), attribute)
    else:
        raise _missing(name)
    globals()[name] = value
    return value


def _say_what_is_missing(module: Any, public: str) -> None:
    """Let a module that CuTe DSL has, too, say what there is instead of a name that it has not."""
    own = vars(module).get("__getattr__")

    def get(name: str) -> Any:
        if own is not None:
            try:
                return own(name)
            except AttributeError:
                pass
        return _imported("ferrule.cutlass.names").of_module(public, name)

    vars(module)["__getattr__"] = get
    for child in ("cpasync", "warp", "warpgroup") if public.endswith("nvgpu") else ():
        _say_what_is_missing(getattr(module, child), f"{public}.{child}")


def _missing(name: str) -> AttributeError:
    """The error for a name that ferrule has not; of one of CuTe DSL, what there is instead."""
    said = None
    if not name.startswith("_"):
        said = _imported("ferrule.cutlass.names").said_of_ferrule(name)
    if said is not None:
        error: AttributeError = _imported("ferrule.compiler.errors").NoSuchNameError(said)
        return error
    return AttributeError(f"module 'ferrule' has no attribute {name!r}")


def _imported(module: str) -> Any:
    """A module of ferrule, imported with a rarer garbage collection if it needs the runtime."""
    if module.startswith("ferrule.specs"):
        return importlib.import_module(module)
    from ferrule.runtime.garbage import with_fewer_collections

    return with_fewer_collections(lambda: importlib.import_module(module))


def __dir__() -> list[str]:
    return __all__


if _gpu := os.environ.get("FERRULE_GPU"):
    importlib.import_module("ferrule.emulator.gpu").start(_gpu)
