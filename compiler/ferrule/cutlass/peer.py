"""The public names of CuTe DSL 4.8.1, by module.

They are those of each module's `__all__`, and `fence_view_async_shared`, which programs call too.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

VERSION: Final = "4.8.1"
NAMES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "cutlass": (
            "AddressSpace Arch Array BFloat16 Boolean CUDA_VERSION ComposedLayout Constexpr "
            "DSLCudaVersion DSLRuntimeError DSLUserCodeError Float Float16 Float32 Float4E2M1FN "
            "Float4E2M1FNx2 Float64 Float6E2M3FN Float6E2M3FNx4 Float6E3M2FN Float6E3M2FNx4 "
            "Float8E4M3 Float8E4M3B11FNUZ Float8E4M3FN Float8E5M2 Float8E8M0FNU FloatNV8E5M3FNU "
            "GridConstant Int128 Int16 Int32 Int4 Int64 Int8 Integer JitArgAdapterRegistry "
            "LaunchConfig Layout LoopUnroll Numeric NumericMeta Pointer Swizzle SymInt TFloat32 "
            "Tensor TypedPointer TypedTensor Uint128 Uint16 Uint32 Uint64 Uint8 Vector align all_ "
            "and_ any_ apply_swizzle as_numeric const_expr cute dsl_user_op dtype dynamic_expr "
            "extract_mlir_values for_generate full full_like grid_constant if_generate inttoptr "
            "is_int_tuple is_int_tuple_type is_integer load_swizzled make_array_view max min "
            "new_from_mlir_values not_ or_ pipeline print_nd_vector range range_constexpr "
            "range_dynamic register_jit_arg_adapter register_library_unload_callback select_ "
            "store_swizzled sym_int sym_int32 sym_int64 target_version "
            "unregister_library_unload_callback utils while_generate yield_out"
        ),
        "cutlass.cute": (
            "AddressSpace Array Atom BFloat16 BitCode Boolean CacheEvictionPriority "
            "ComposedLayout ConstValue CopyAtom DeviceTarget DisableCuteExtCompile E "
            "EnableAssertions EnableTVMFFI FastDivmodDivisor FastDivmodDivisorV2 Float Float16 "
            "Float32 Float4E2M1FN Float4E2M1FNx2 Float64 Float6E2M3FN Float6E2M3FNx4 Float6E3M2FN "
            "Float6E3M2FNx4 Float8E4M3 Float8E4M3B11FNUZ Float8E4M3FN Float8E5M2 Float8E8M0FNU "
            "FloatNV8E5M3FNU FrontendNext GPUArch GenerateLineInfo Int128 Int16 Int32 Int4 Int64 "
            "Int8 Integer KeepCUBIN KeepPTX KeepSASS Layout LinkLibraries MathOperand MmaAtom "
            "Numeric NumericMeta NvdisasmOptions OptLevel Pointer PtxasOptions RDC Ratio "
            "ReductionKind ReductionOp RemarkFilter RemarkOutput RoundingMode ScaledBasis Swizzle "
            "SymInt TFloat32 Tensor TensorSSA ThrCopy ThrMma TiledCopy TiledMma TypedTensor "
            "Uint16 Uint32 Uint64 Uint8 abs absf absi acos acosh add all_ any_ append append_ones "
            "arch as_numeric asin asinh assume atan atan2 atanh autovec_copy basic_copy "
            "basic_copy_if basis_get basis_value blocked_product cbrt ceil ceil_div clamp "
            "coalesce compile compile_to complement composition copy copy_atom_call copysign cos "
            "cosh cosize crd2idx depth dice div domain_offset elem_less empty_like erf erfc exp "
            "exp2 expm1 export extern fast_divmod_create_divisor fast_divmod_create_divisor_v2 "
            "ffi filter filter_tuple filter_zeros find find_if flat_divide flat_product flatten "
            "flatten_to_tuple floor fma fpowi front full full_like gemm get get_divisibility "
            "get_leaves get_nonswizzle_portion get_sparse_elem_type get_swizzle_portion "
            "group_modes has_underscore idx2crd increment_coord ipowi is_congruent is_int_tuple "
            "is_int_tuple_type is_integer is_major is_static is_weakly_congruent isfinite isinf "
            "isnan isnormal jit kernel leading_dim left_inverse local_partition local_tile log "
            "log10 log1p log2 logical_divide logical_product make_atom make_composed_layout "
            "make_copy_atom make_cotiled_copy make_fragment_like make_identity_layout "
            "make_identity_tensor make_layout make_layout_image_mask make_layout_like "
            "make_layout_tv make_mma_atom make_native_struct make_ordered_layout make_ptr "
            "make_rmem_tensor make_rmem_tensor_like make_sparse_elem make_swizzle make_tensor "
            "make_tiled_copy make_tiled_copy_A make_tiled_copy_B make_tiled_copy_C "
            "make_tiled_copy_C_atom make_tiled_copy_D make_tiled_copy_S make_tiled_copy_tv "
            "make_tiled_mma mangle math max max_common_layout max_common_vector min mma_atom_call "
            "mul native_struct neg nullspace nvgpu ones_like pow prefetch prepend prepend_ones "
            "pretty_str print_tensor printf product product_each product_like raked_product rank "
            "rcp recast_layout recast_ptr recast_tensor register_jit_arg_adapter rem repeat "
            "repeat_as_tuple repeat_like right_inverse round round_up roundeven rsqrt runtime "
            "select shape shape_div sin sincos sinh size size_in_bytes slice_ slice_and_offset "
            "sqrt static struct sub sym_int sym_int32 sym_int64 tan tanh testing tile_to_shape "
            "tiled_divide tiled_product transform_apply transform_leaf trunc tuple_cat unflatten "
            "union unwrap viz where wrap zeros_like zipped_divide zipped_product"
        ),
        "cutlass.cute.arch": (
            "THREADS_PER_WARPGROUP WARPS_PER_WARPGROUP WARP_SIZE activemask add_cc "
            "add_packed_bf16x2 add_packed_bf16x2_f32x2_f32x2 add_packed_f16x2 "
            "add_packed_f16x2_f32x2_f32x2 add_packed_f32x2 add_packed_f32x2_bf16x2_f32x2 "
            "add_packed_f32x2_f16x2_f32x2 add_sat_int addc aggr_smem_size alloc_smem alloc_tmem "
            "atomic_add atomic_and atomic_cas atomic_exch atomic_fmax atomic_fmin atomic_max "
            "atomic_max_float32 atomic_min atomic_or atomic_xor barrier barrier_arrive bfe bfi "
            "bfind block_dim block_idx block_idx_in_cluster block_in_cluster_dim "
            "block_in_cluster_idx brev clc_response clock clock64 cluster_arrive "
            "cluster_arrive_relaxed cluster_dim cluster_idx cluster_size cluster_wait clz "
            "cp_async_bulk_commit_group cp_async_bulk_wait_group cp_async_commit_group "
            "cp_async_wait_group cvt_f32_tf32 cvt_f32x2_bf16x2 cvt_i4_bf16_intrinsic cvt_i8_bf16 "
            "cvt_i8_bf16_intrinsic cvt_i8x2_to_bf16x2 cvt_i8x2_to_f32x2 cvt_i8x4_to_bf16x4 "
            "cvt_i8x4_to_f32x4 dealloc_tmem dynamic_smem_size elect_one exp2 exp2_packed_bf16x2 "
            "exp2_packed_f16x2 fence_acq_rel_cluster fence_acq_rel_cta fence_acq_rel_gpu "
            "fence_acq_rel_sys fence_proxy fence_view_async_shared fence_view_async_tmem_load "
            "fence_view_async_tmem_store "
            "fma_bf16 fma_f16 fma_packed_bf16x2 fma_packed_f16x2 fma_packed_f32x2 "
            "fma_packed_f32x2_bf16x2_f32x2_f32x2 fma_packed_f32x2_f16x2_f32x2_f32x2 fmax fmin "
            "get_dyn_smem get_dyn_smem_size get_max_tmem_alloc_cols get_min_tmem_alloc_cols "
            "globaltimer globaltimer_lo grid_dim gridid issue_clc_query lane_idx lanemask_eq "
            "lanemask_ge lanemask_gt lanemask_le lanemask_lt load lop3 mad24 mad_cc madc "
            "make_warp_uniform match_sync mbarrier_arrive mbarrier_arrive_and_expect_tx "
            "mbarrier_conditional_try_wait mbarrier_expect_tx mbarrier_init mbarrier_init_fence "
            "mbarrier_test_wait mbarrier_try_wait mbarrier_wait mul24 mul_hi mul_packed_f32x2 "
            "mul_wide nsmid nwarpid physical_warp_id popc prmt rcp_approx red "
            "relinquish_tmem_alloc_permit retrieve_tmem_ptr setmaxregister_decrease "
            "setmaxregister_increase shf shuffle_sync shuffle_sync_bfly shuffle_sync_down "
            "shuffle_sync_up smid store store_async_dsmem sub_cc sub_packed_bf16x2 "
            "sub_packed_bf16x2_f32x2_f32x2 sub_packed_f16x2 sub_packed_f16x2_f32x2_f32x2 "
            "sub_packed_f32x2 sub_packed_f32x2_bf16x2_f32x2 sub_packed_f32x2_f16x2_f32x2 "
            "sub_sat_int subc sync_threads sync_warp thread_idx total_smem_size vote_all_sync "
            "vote_any_sync vote_ballot_sync vote_uni_sync warp_idx warp_redux_sync "
            "warpgroup_reg_alloc warpgroup_reg_dealloc warpsize"
        ),
        "cutlass.cute.math": (
            "MathOperand RoundingMode abs absf absi acos acosh add asin asinh atan atan2 atanh "
            "cbrt ceil clamp copysign cos cosh div erf erfc exp exp2 expm1 floor fma fpowi ipowi "
            "isfinite isinf isnan isnormal log log10 log1p log2 max min mul neg pow rcp rem round "
            "roundeven rsqrt sin sincos sinh sqrt sub tan tanh trunc"
        ),
        "cutlass.cute.nvgpu": (
            "CacheEvictionPriority CopyG2ROp CopyG2RTrait CopyR2GOp CopyR2GTrait CopyR2SOp "
            "CopyR2STrait CopyS2ROp CopyS2RTrait CopyUniversalOp CopyUniversalTrait "
            "L2PrefetchSize LoadCacheMode MemoryOrder MemoryScope MmaUniversalOp "
            "MmaUniversalTrait OperandMajorMode OutputMajorMode SharedSpace StoreCacheMode "
            "cpasync make_im2col_tma_atom_A make_tiled_tma_atom_A make_tiled_tma_atom_B "
            "make_tiled_tma_atom_C normalize_field_to_ir_name tcgen05 warp warpgroup"
        ),
        "cutlass.cute.nvgpu.cpasync": (
            "CopyBulkG2SMulticastOp CopyBulkG2SOp CopyBulkS2GByteMaskOp CopyBulkS2GOp "
            "CopyBulkS2SOp CopyBulkTensorTileG2SMulticastOp CopyBulkTensorTileG2SOp "
            "CopyBulkTensorTileS2GOp CopyDsmemStoreOp CopyG2SOp CopyReduceBulkTensorTileS2GOp "
            "LoadCacheMode TmaCopyOp TmaInfo copy_tensormap cp_fence_tma_desc_release "
            "create_tma_multicast_mask fence_tma_desc_acquire fence_tma_desc_release "
            "group_bulk_copy_modes make_tiled_tma_atom prefetch_descriptor tma_partition "
            "update_tma_descriptor"
        ),
        "cutlass.cute.nvgpu.warp": (
            "Field LdMatrix16x16x8bOp LdMatrix16x8x8bOp LdMatrix8x8x16bOp "
            "MXF8F6F4_SUPPORTED_PAIRS MmaF16BF16Op MmaFP8Op MmaMXF4NVF4Op MmaMXF4Op MmaMXF8F6F4Op "
            "MmaMXF8Op MmaTF32Op StMatrix16x8x8bOp StMatrix8x8x16bOp"
        ),
        "cutlass.cute.nvgpu.warpgroup": (
            "Field MmaF16BF16Op MmaF8Op OperandMajorMode OperandSource SmemLayoutAtomKind "
            "commit_group fence make_smem_layout_atom wait_group"
        ),
        "cutlass.cute.runtime": (
            "AddressSpace CoreTensor DSLRuntimeError Float32 JitArgAdapterRegistry Numeric "
            "Pointer SymInt TFloat32 Tensor TensorAdapter TypedTensor find_runtime_libraries "
            "from_dlpack load_module make_fake_compact_tensor make_fake_stream make_fake_tensor "
            "make_ptr nullptr"
        ),
        "cutlass.cute.testing": (
            "Assertion AssertionError Boolean CantImplementError Constexpr CuTeDSL CuptiProfiler "
            "Int8 JitArguments Layout Numeric RuntimeAssertion Tensor TensorInitConfig TensorSSA "
            "add_tensor_init_args assert_ autotune_jit benchmark composition const_expr convert "
            "copy dsl_user_op elem_less from_dlpack get get_workspace_count is_int_tuple_type "
            "make_copy_atom make_identity_tensor make_layout make_rmem_tensor rank recast_layout "
            "recast_tensor sample_pytest should_use_normal_init size tensor_init_config_from_args "
            "tune validate_tensor_init_args zipped_divide"
        ),
        "cutlass.torch": (
            "Float4E2M1FN Float6E2M3FN Float6E3M2FN Float8E4M3FN Float8E5M2 Float8E8M0FNU "
            "FloatNV8E5M3FNU GaussianInitConfig Int4 Numeric RandomInitConfig ScalarInitConfig "
            "Tensor TensorInitType as_tensor convert_cute_tensor create_and_permute_torch_tensor "
            "current_stream cute_tensor_like default_stream dtype from_dlpack get_leading_dim "
            "matrix prepare_tensors_for_gemm"
        ),
        "cutlass.utils": (
            "Band ClcDynamicPersistentTileScheduler ClcDynamicPersistentTileSchedulerParams "
            "GroupSearchResult GroupedGemmGroupSearchState GroupedGemmTileSchedulerHelper "
            "HardwareInfo LayoutEnum PALETTES PersistentTileSchedulerParams SmemAllocator "
            "StaticPersistentRuntimeTileScheduler StaticPersistentTileScheduler TensorMapManager "
            "TensorMapUpdateMode TmemAllocator TmemBufferPool TransformMode WorkTileInfo "
            "block_copy cluster_shape_to_tma_atom_A cluster_shape_to_tma_atom_B "
            "cluster_shape_to_tma_atom_SFB compute_epilogue_tile_shape compute_smem_layout "
            "compute_tmem_cols_from_layout create_cute_tensor_for_fp8 create_initial_search_state "
            "distributed gemm get_copy_atom_a_transform get_divisibility get_gmem_layout_scale "
            "get_kernel_smem_size get_num_tmem_alloc_cols get_permutation_mnk "
            "get_smem_capacity_in_bytes get_smem_layout_atom_ab get_smem_layout_atom_epi "
            "get_smem_layout_scale get_smem_store_op get_tma_atom_kind get_tmem_load_op "
            "get_transform_a_source is_fp8_dtype is_valid_scale_granularity "
            "make_blockscaled_trivial_tiled_mma make_smem_layout make_smem_layout_a "
            "make_smem_layout_b make_smem_layout_epi make_trivial_tiled_mma print_latex "
            "print_latex_tv scale_partition scale_tma_partition sm100 sm90 "
            "sm90_get_smem_layout_atom sm90_make_trivial_tiled_mma transform_partition"
        ),
        "cutlass.pipeline": (
            "Agent CooperativeGroup MbarrierArray MbarrierLayout NamedBarrier PipelineAsync "
            "PipelineAsyncUmma PipelineClcFetchAsync PipelineConsumer PipelineCpAsync PipelineOp "
            "PipelineOrder PipelineProducer PipelineState PipelineTmaAsync "
            "PipelineTmaMultiConsumersAsync PipelineTmaStore PipelineTmaUmma PipelineUmmaAsync "
            "PipelineUserType SyncObject TmaStoreFence agent_sync arrive arrive_and_wait "
            "arrive_unaligned compute_k_tile make_pipeline_state pipeline_init_arrive "
            "pipeline_init_wait sync wait wait_unaligned"
        ),
    }
)
"""Names of each module, with spaces between them."""
