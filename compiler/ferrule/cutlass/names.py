"""Where ferrule has the names of CuTe DSL's modules, and the errors for names that it lacks.

`SOURCES` has, for each module, the modules of ferrule that its names come from, in order.  A module
of this package asks `resolver` for its `__getattr__`.
"""

from __future__ import annotations

import dis
import importlib
import sys
from collections.abc import Callable, Mapping
from types import FrameType, MappingProxyType, ModuleType
from typing import Any, Final, NoReturn

from ferrule.compiler.errors import NoSuchNameError

_LIBRARIES: Final = (
    "cutlass._mlir._mlir_libs",
    "cutlass._mlir._mlir_libs._cutlass_ir",
    "cutlass._mlir._mlir_libs._cutlass_ir._mlir",
    "cutlass._mlir._mlir_libs._cutlass_ir._mlir.ir",
)
_IMPORT_FROM: Final = dis.opmap["IMPORT_FROM"]
SOURCES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "cutlass": ("ferrule", "ferrule.language.faces.cute"),
        "cutlass.cute": ("ferrule", "ferrule.language.faces.cute", "ferrule.language.faces.maths"),
        "cutlass.cute.typing": ("ferrule", "ferrule.language.faces.cute"),
        "cutlass.cute.arch": ("ferrule.language.faces.arch",),
        "cutlass.cute.math": ("ferrule.language.faces.maths",),
        "cutlass.cute.runtime": (
            *("ferrule.runtime", "ferrule.specs", "ferrule.specs.fakes"),
            *("ferrule.language.faces.base", "ferrule.language.faces.cute"),
        ),
        "cutlass.cute.testing": (),
        "cutlass.cute.nvgpu": ("ferrule.language.atoms.nvgpu",),
        "cutlass.cute.nvgpu.cpasync": ("ferrule.language.atoms.cpasync",),
        "cutlass.cute.nvgpu.warp": ("ferrule.language.atoms.warp",),
        "cutlass.cute.nvgpu.warpgroup": ("ferrule.language.atoms.warpgroup",),
        "cutlass.cuda": (),
        "cutlass.torch": (),
        "cutlass.utils": ("ferrule.language.faces.utils", "ferrule.cutlass.sm90_names"),
        "cutlass.utils.hopper_helpers": (),
        "cutlass.utils.hardware_info": (),
        "cutlass.utils.tensor_helpers": (),
        **dict.fromkeys(
            (
                *("cutlass._mlir", "cutlass._mlir.ir", "cutlass._mlir.dialects"),
                *(f"cutlass._mlir.dialects.{name}" for name in ("llvm", "math", "nvvm", "vector")),
                *_LIBRARIES,
            ),
            (),
        ),
        "cutlass.cute.core": ("ferrule", "ferrule.language.faces.cute"),
        "cutlass.cute.arch.nvvm_wrappers": ("ferrule.language.faces.arch",),
        "cutlass.cutlass_dsl": ("ferrule", "ferrule.language.faces.cute"),
        "cutlass.pipeline": ("ferrule.language.faces.pipelines",),
        "cutlass.testing": (),
        "cutlass.base_dsl": (),
        "cutlass.base_dsl.runtime": (),
        "cutlass.base_dsl.runtime.cuda": (),
        "cutlass.jax": (),
        "cutlass.jax.testing": (),
    }
)
"""The modules of ferrule that have the names of each module of CuTe DSL.  A module with a file of
its own in this package has an empty row."""
MODULES: Final[Mapping[str, str]] = MappingProxyType(
    {
        **{name: f"ferrule.{name}" for name in SOURCES},
        "cutlass.cute.testing": "ferrule.cutlass.testing",
        "cutlass.utils.hopper_helpers": "ferrule.cutlass.hopper_helpers",
        "cutlass.utils.hardware_info": "ferrule.cutlass.utils",
        "cutlass.jax.testing": "ferrule.cutlass.jax_testing",
        "cutlass.base_dsl.runtime": "ferrule.cutlass.base_dsl",
        "cutlass.base_dsl.runtime.cuda": "ferrule.cutlass.base_dsl",
        "cutlass.cute.core": "ferrule.cutlass.cutlass_dsl",
        "cutlass.cute.arch.nvvm_wrappers": "ferrule.cutlass.nvvm_wrappers",
        **dict.fromkeys(
            (
                *("cutlass._mlir", "cutlass._mlir.ir", "cutlass._mlir.dialects"),
                *(f"cutlass._mlir.dialects.{name}" for name in ("llvm", "math", "nvvm", "vector")),
                *_LIBRARIES,
            ),
            "ferrule.cutlass.mlir",
        ),
        "cutlass.utils.tensor_helpers": "ferrule.cutlass.tensor_helpers",
    }
)
"""The module of ferrule that stands for each."""
OTHERWISE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "add_cc": "fe.Uint64 holds the carry of 32 bits",
        "addc": "fe.Uint64 holds the carry of 32 bits",
        "sub_cc": "fe.Uint64 holds the borrow of 32 bits",
        "subc": "fe.Uint64 holds the borrow of 32 bits",
        "mad_cc": "fe.Uint64 holds the carry of 32 bits",
        "madc": "fe.Uint64 holds the carry of 32 bits",
        "load_swizzled": "fe.recast_ptr and a layout",
        "DSLRuntimeError": "fe.CompileError",
        "DSLUserCodeError": "fe.CompileError",
        "extern": "fe.extern_func",
        "ffi": "fe.call, fe.extern_func, fe.import_func",
        "export": "fe.export_library, and export_to_c of a function",
        "compile_to": "export_to_c of a function",
        "while_generate": "a while",
        "target_version": "options, --gpu-arch",
        "Float4E2M1FNx2": 'the dtype "float4_e2m1fnx2" of a fake tensor',
        "Float6E2M3FNx4": "fe.Float6E2M3FN",
        "Float6E3M2FNx4": "fe.Float6E3M2FN",
        "gpu": "fe.arch",
        "native_struct": "a dataclass; dataclasses.replace makes a changed one",
        "make_native_struct": "dataclasses.make_dataclass",
        "register_jit_arg_adapter": "__ferrule_spec__ of the class",
        "JitArgAdapterRegistry": "__ferrule_spec__ of the class",
    }
)
"""The replacement in ferrule for a name that it lacks, in a few words."""
BLACKWELL: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        module: frozenset(names.split())
        for module, names in (
            (
                "cutlass.cute.arch",
                "alloc_tmem clc_response dealloc_tmem fence_view_async_tmem_load "
                "fence_view_async_tmem_store get_max_tmem_alloc_cols get_min_tmem_alloc_cols "
                "issue_clc_query relinquish_tmem_alloc_permit retrieve_tmem_ptr",
            ),
            (
                "cutlass.cute.nvgpu",
                "make_im2col_tma_atom_A make_tiled_tma_atom_A make_tiled_tma_atom_B "
                "make_tiled_tma_atom_C tcgen05",
            ),
            (
                "cutlass.cute.nvgpu.warp",
                "Field LdMatrix16x16x8bOp LdMatrix16x8x8bOp MXF8F6F4_SUPPORTED_PAIRS MmaMXF4NVF4Op "
                "MmaMXF4Op MmaMXF8F6F4Op MmaMXF8Op StMatrix16x8x8bOp",
            ),
            (
                "cutlass.utils",
                "ClcDynamicPersistentTileScheduler ClcDynamicPersistentTileSchedulerParams "
                "TmemAllocator TmemBufferPool TransformMode cluster_shape_to_tma_atom_A "
                "cluster_shape_to_tma_atom_B cluster_shape_to_tma_atom_SFB "
                "compute_epilogue_tile_shape compute_smem_layout compute_tmem_cols_from_layout "
                "gemm get_copy_atom_a_transform get_gmem_layout_scale get_num_tmem_alloc_cols "
                "get_permutation_mnk get_smem_layout_atom_ab get_smem_layout_atom_epi "
                "get_smem_layout_scale get_smem_store_op get_tma_atom_kind get_tmem_load_op "
                "get_transform_a_source is_valid_scale_granularity "
                "make_blockscaled_trivial_tiled_mma make_smem_layout make_smem_layout_a "
                "make_smem_layout_b make_smem_layout_epi make_trivial_tiled_mma scale_partition "
                "scale_tma_partition sm100 transform_partition",
            ),
            (
                "cutlass.pipeline",
                "PipelineAsyncUmma PipelineClcFetchAsync PipelineTmaMultiConsumersAsync "
                "PipelineTmaUmma PipelineUmmaAsync",
            ),
        )
    }
)
"""The names of each module that are for Blackwell, or later, alone."""
_INSIDE: Final = "a part of CuTe DSL's own classes, which programs do not name"
_NOTHING: Final = "nothing public says what it does"
_HINTS: Final = "for hints and orders of memory, which the copies here have not"
_BULK: Final = "`arch.cp_async_bulk` copies bytes; there is no atom for it yet"
REASONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "Band": "for the pictures of `print_latex_tv`, and deprecated",
        "PALETTES": "for the pictures of `print_latex_tv`, and deprecated",
        "viz": "`print_latex` and `print_latex_tv` are in `cutlass.cute` and `cutlass.utils`",
        "block_copy": "`cpasync.tma_partition` and `cute.copy` are what it does",
        "distributed": "for several GPUs with one address for all, which are not emulated",
        "get_kernel_smem_size": "a launch provides what its kernel needs; see "
        "`arch.total_smem_size` in the kernel",
        "wait": "an error there, too: it passes on too few arguments",
        **dict.fromkeys(("MbarrierArray", "MbarrierLayout", "PipelineOp", "SyncObject"), _INSIDE),
        **dict.fromkeys(("Atom", "ConstValue", "NumericMeta", "TmaCopyOp", "make_atom"), _INSIDE),
        **dict.fromkeys(("CopyG2RTrait", "CopyR2GTrait", "CopyR2STrait", "CopyS2RTrait"), _INSIDE),
        **dict.fromkeys(("CopyUniversalTrait", "MmaUniversalTrait", "TmaStoreFence"), _INSIDE),
        **dict.fromkeys(("normalize_field_to_ir_name", "is_int_tuple_type", "mangle"), _INSIDE),
        **dict.fromkeys(("static", "get_leaves", "make_sparse_elem"), _NOTHING),
        **dict.fromkeys(("get_sparse_elem_type",), _NOTHING),
        "OutputMajorMode": "nothing public says what takes it",
        **dict.fromkeys(("CopyG2ROp", "CopyR2GOp", "CopyR2SOp", "CopyS2ROp"), _HINTS),
        **dict.fromkeys(("CacheEvictionPriority", "L2PrefetchSize", "MemoryOrder"), _HINTS),
        **dict.fromkeys(("MemoryScope", "SharedSpace", "StoreCacheMode"), _HINTS),
        **dict.fromkeys(("CopyBulkG2SOp", "CopyBulkG2SMulticastOp", "CopyBulkS2GOp"), _BULK),
        **dict.fromkeys(("CopyBulkS2GByteMaskOp", "CopyBulkS2SOp"), _BULK),
        **dict.fromkeys(
            ("cvt_i4_bf16_intrinsic", "cvt_i8_bf16_intrinsic"),
            "`x.to(fe.BFloat16)` of a vector: this one takes values of MLIR",
        ),
        "DisableCuteExtCompile": "for the folder `experimental`",
        "Int128": "no target here has integers of 128 bits in kernels",
    }
)
"""Why ferrule has not some of the other names."""
_MLIR: Final = "cutlass._mlir"
_OF_MLIR: Final = tuple(name for name in SOURCES if name.startswith(_MLIR))
PAGE: Final = "docs/cute_names.md"


def find(module: str, name: str) -> Any:
    """The object of a name of CuTe DSL.  A NoSuchNameError says what there is instead."""
    child = f"{module}.{name}"
    if module.startswith(_MLIR) and any(each.endswith(f".{name}") for each in _OF_MLIR):
        child = _MLIR
    if child in MODULES:
        return importlib.import_module(MODULES[child])
    own = vars(importlib.import_module(MODULES[module]))
    if name in own and module not in ("cutlass", "cutlass.cute"):
        return own[name]
    for source in SOURCES[module]:
        found = importlib.import_module(source)
        if hasattr(found, name):
            return getattr(found, name)
    raise NoSuchNameError(missing(module, name))


def missing(module: str, name: str) -> str:
    """The text of an error for a name that ferrule has not."""
    instead = OTHERWISE.get(name)
    if instead is not None:
        return f"{module}.{name} is not in ferrule; instead: {instead} ({PAGE})"
    if name in BLACKWELL.get(module, ()):
        return f"{module}.{name} is for Blackwell, and not in ferrule{_of_hopper(name)} ({PAGE})"
    if name in REASONS and name in _known(module):
        return f"{module}.{name} is not in ferrule: {REASONS[name]} ({PAGE})"
    return (
        f"{module}.{name} is not in ferrule, or not yet ({PAGE} says what is){_near(module, name)}"
    )


def said_of_ferrule(name: str) -> str | None:
    """The text of the error for `fe.name`; None unless CuTe DSL has such a name."""
    public = next((each for each in ("cutlass.cute", "cutlass") if name in _known(each)), None)
    return None if public is None else missing(public, name)


def _of_hopper(name: str) -> str:
    """What there is for Hopper instead of a helper for Blackwell."""
    helpers = vars(importlib.import_module(MODULES["cutlass.utils.hopper_helpers"]))
    return f"; for sm_90a: cutlass.utils.sm90.{name}" if name in helpers else ""


def of_module(public: str, name: str) -> Any:
    """`fe.arch.name` and alike, where the module of ferrule itself lacks the name: what the module
    that stands for CuTe DSL's `public` has, or the AttributeError."""
    if name.startswith("__"):
        raise AttributeError(f"module {public!r} has no attribute {name!r}")
    if name in _known(public):
        modules = (MODULES[public], *SOURCES[public])
        for namespace in (vars(importlib.import_module(each)) for each in modules):
            if name in namespace:
                return namespace[name]
        raise NoSuchNameError(missing(public, name))
    short = public.removeprefix("cutlass.").removeprefix("cute.")
    raise AttributeError(f"fe.{short} has no attribute {name!r}{_near(public, name)}")


def _known(module: str) -> list[str]:
    """The names of a module of CuTe DSL itself."""
    # Not `from ferrule.cutlass import peer`: that would look for a name `peer` in ferrule first.
    names: Mapping[str, str] = importlib.import_module("ferrule.cutlass.peer").NAMES
    return names.get(module, "").split()


def _near(module: str, name: str) -> str:
    """The end of the message for a name that CuTe DSL does not have: a similar name."""
    if name in _known(module):
        return ""
    import difflib

    near = difflib.get_close_matches(name, names_of(module), n=1)
    return f"; did you mean {near[0]}?" if near else ""


def resolver(public: str) -> Callable[[str], Any]:
    """The `__getattr__` of the module that stands for this one of CuTe DSL."""
    own = MODULES[public]

    def get(name: str) -> Any:
        if name == "__all__":
            return _starred(public)
        if name.startswith("__"):
            raise AttributeError(f"module {own!r} has no attribute {name!r}")
        try:
            found = find(public, name)
        except AttributeError as error:
            _raise(error, sys._getframe(1))
        # From the second look-up on Python finds it without this function.
        setattr(sys.modules[own], name, found)
        return found

    return get


_TYPES: Final = (
    *("Boolean", "Int4", "Int8", "Int16", "Int32", "Int64", "Int128"),
    *("Uint8", "Uint16", "Uint32", "Uint64", "Uint128", "Float16", "BFloat16"),
    *("TFloat32", "Float32", "Float64", "Float8E4M3FN", "Float8E5M2", "Float8E8M0FNU"),
    *("Float4E2M1FN", "Float6E2M3FN", "Float6E3M2FN", "Numeric", "Integer", "Float"),
    *("Constexpr", "Layout", "Pointer", "Tensor", "AddressSpace", "sym_int", "sym_int32"),
    "sym_int64",
)
"""The names of `cutlass.cute.typing`, which has no list of its own."""


def _starred(public: str) -> list[str]:
    """What `from module import *` brings: the names of CuTe DSL's module that ferrule has."""
    own = importlib.import_module(MODULES[public])
    theirs = _known(public) or (_TYPES if public == "cutlass.cute.typing" else _made_in(own))
    return sorted(name for name in theirs if not name.startswith("_") and hasattr(own, name))


def _made_in(module: ModuleType) -> list[str]:
    """The names of a module's own functions and classes, without those it imports."""
    made = vars(module).items()
    return [name for name, v in made if getattr(v, "__module__", None) == module.__name__]


def _raise(error: AttributeError, frame: FrameType) -> NoReturn:
    """Raises it, as an ImportError in `from module import name`: Python would replace its text."""
    code, at = frame.f_code.co_code, frame.f_lasti
    if 0 <= at < len(code) and code[at] == _IMPORT_FROM:
        raise ImportError(str(error)) from None
    raise error from None


def names_of(public: str) -> list[str]:
    """The public names that a module of CuTe DSL has here."""
    modules = [importlib.import_module(each) for each in SOURCES[public]]
    own: ModuleType = importlib.import_module(MODULES[public])
    found = [name for module in modules for name in dir(module)] or list(vars(own))
    children = [name.rpartition(".")[2] for name in MODULES if name.rpartition(".")[0] == public]
    return sorted({name for name in (*found, *children) if not name.startswith("_")})
