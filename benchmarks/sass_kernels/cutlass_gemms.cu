// The matrix products of examples/cute as CUTLASS's own kernels, with the same tiles, stages and
// warps: float16 operands whose rows lie along k, sums and results of float32.  Compiled for sm_80
// this file has the one with mma.sync, and for sm_90a the one with TMA and wgmma.
#include <cute/tensor.hpp>
#include <cutlass/cutlass.h>
#include <cutlass/device_kernel.h>

#if defined(PRODUCT_SM80)
#include <cutlass/gemm/device/gemm.h>

using Rows = cutlass::layout::RowMajor;
using Columns = cutlass::layout::ColumnMajor;
using Scaled = cutlass::epilogue::thread::LinearCombination<
    float, 4, float, float, cutlass::epilogue::thread::ScaleType::Nothing>;
using Product = cutlass::gemm::device::Gemm<
    cutlass::half_t, Rows, cutlass::half_t, Columns, float, Rows, float,
    cutlass::arch::OpClassTensorOp, cutlass::arch::Sm80, cutlass::gemm::GemmShape<128, 128, 32>,
    cutlass::gemm::GemmShape<64, 64, 32>, cutlass::gemm::GemmShape<16, 8, 16>, Scaled,
    cutlass::gemm::threadblock::GemmIdentityThreadblockSwizzle<>, 4>;

template __global__ void cutlass::Kernel<Product::GemmKernel>(Product::GemmKernel::Params);

#else
#include <cutlass/epilogue/collective/collective_builder.hpp>
#include <cutlass/gemm/collective/collective_builder.hpp>
#include <cutlass/gemm/kernel/gemm_universal.hpp>
#include <cutlass/gemm/kernel/tile_scheduler.hpp>

using Tile = cute::Shape<cute::_128, cute::_128, cute::_64>;
using Cluster = cute::Shape<cute::_1, cute::_1, cute::_1>;
using Rows = cutlass::layout::RowMajor;
using Columns = cutlass::layout::ColumnMajor;
using Loop = cutlass::gemm::collective::CollectiveBuilder<
    cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, cutlass::half_t, Rows, 8, cutlass::half_t,
    Columns, 8, float, Tile, Cluster, cutlass::gemm::collective::StageCount<4>,
    cutlass::gemm::KernelTmaWarpSpecializedCooperative>::CollectiveOp;
using Store = cutlass::epilogue::collective::CollectiveBuilder<
    cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Tile, Cluster,
    cutlass::epilogue::collective::EpilogueTileAuto, float, float, void, Rows, 4, float, Rows, 4,
    cutlass::epilogue::NoSmemWarpSpecialized>::CollectiveOp;
using Kernel = cutlass::gemm::kernel::GemmUniversal<
    cute::Shape<int, int, int, int>, Loop, Store, cutlass::gemm::PersistentScheduler>;

template __global__ void cutlass::device_kernel<Kernel>(const __grid_constant__ Kernel::Params);
#endif
