module attributes {gpu.container_module} {
  gpu.module @kernels {
  gpu.func @"scale_kernel"(%parameter: !llvm.struct<(ptr, struct<(struct<(i32)>)>)>, %parameter.1: !llvm.struct<(ptr, struct<(struct<(i32)>)>)>, %parameter.2: f32) kernel attributes {nvvm.reqntid = array<i32: 64, 1, 1>} {
    %v = llvm.extractvalue %parameter[1, 0, 0] : !llvm.struct<(ptr, struct<(struct<(i32)>)>)>
    %v.1 = arith.extsi %v : i32 to i64
    %v.2 = llvm.extractvalue %parameter[0] : !llvm.struct<(ptr, struct<(struct<(i32)>)>)>
    %v.3 = llvm.addrspacecast %v.2 : !llvm.ptr to !llvm.ptr<1>
    %v.4 = llvm.mlir.poison : !llvm.struct<(ptr<1>, ptr<1>, i64)>
    %c0 = arith.constant 0 : i64
    %v.5 = llvm.insertvalue %v.3, %v.4[0] : !llvm.struct<(ptr<1>, ptr<1>, i64)>
    %v.6 = llvm.insertvalue %v.3, %v.5[1] : !llvm.struct<(ptr<1>, ptr<1>, i64)>
    %v.7 = llvm.insertvalue %c0, %v.6[2] : !llvm.struct<(ptr<1>, ptr<1>, i64)>
    %v.8 = builtin.unrealized_conversion_cast %v.7 : !llvm.struct<(ptr<1>, ptr<1>, i64)> to memref<f32, 1>
    %c0.1 = arith.constant 0 : index
    %v.9 = arith.index_cast %v.1 : i64 to index
    %v.10 = memref.reinterpret_cast %v.8 to offset: [%c0.1], sizes: [%v.9], strides: [1] : memref<f32, 1> to memref<?xf32, strided<[1], offset: ?>, 1>
    %v.11 = llvm.extractvalue %parameter.1[0] : !llvm.struct<(ptr, struct<(struct<(i32)>)>)>
    %v.12 = llvm.addrspacecast %v.11 : !llvm.ptr to !llvm.ptr<1>
    %v.13 = llvm.mlir.poison : !llvm.struct<(ptr<1>, ptr<1>, i64)>
    %c0.2 = arith.constant 0 : i64
    %v.14 = llvm.insertvalue %v.12, %v.13[0] : !llvm.struct<(ptr<1>, ptr<1>, i64)>
    %v.15 = llvm.insertvalue %v.12, %v.14[1] : !llvm.struct<(ptr<1>, ptr<1>, i64)>
    %v.16 = llvm.insertvalue %c0.2, %v.15[2] : !llvm.struct<(ptr<1>, ptr<1>, i64)>
    %v.17 = builtin.unrealized_conversion_cast %v.16 : !llvm.struct<(ptr<1>, ptr<1>, i64)> to memref<f32, 1>
    %c0.3 = arith.constant 0 : index
    %v.18 = arith.index_cast %v.1 : i64 to index
    %v.19 = memref.reinterpret_cast %v.17 to offset: [%c0.3], sizes: [%v.18], strides: [1] : memref<f32, 1> to memref<?xf32, strided<[1], offset: ?>, 1>
    %v.20 = gpu.block_id x
    %v.21 = arith.index_cast %v.20 : index to i64
    %v.22 = gpu.thread_id x
    %v.23 = arith.index_cast %v.22 : index to i64
    %v.24 = arith.trunci %v.21 : i64 to i32
    %c64 = arith.constant 64 : i32
    %v.25 = arith.muli %v.24, %c64 : i32
    %v.26 = arith.trunci %v.23 : i64 to i32
    %v.27 = arith.addi %v.25, %v.26 : i32
    %v.28 = arith.trunci %v.1 : i64 to i32
    %v.29 = arith.cmpi slt, %v.27, %v.28 : i32
    scf.if %v.29 {
      %v.30 = arith.extsi %v.27 : i32 to i64
      %v.31 = arith.index_cast %v.30 : i64 to index
      %load = memref.load %v.10[%v.31] : memref<?xf32, strided<[1], offset: ?>, 1>
      %v.32 = arith.mulf %parameter.2, %load : f32
      %v.33 = arith.extsi %v.27 : i32 to i64
      %v.34 = arith.index_cast %v.33 : i64 to index
      memref.store %v.32, %v.19[%v.34] : memref<?xf32, strided<[1], offset: ?>, 1>
      scf.yield
    }
    gpu.return
  }
  }
  func.func @ferrule_body(%values: !llvm.ptr, %x: !llvm.ptr, %y: !llvm.ptr, %factor: f32, %n: i32) -> i32 {
    %v.35 = arith.extsi %n : i32 to i64
    %v.36 = llvm.mlir.poison : !llvm.struct<(ptr, ptr, i64)>
    %c0.4 = arith.constant 0 : i64
    %v.37 = llvm.insertvalue %x, %v.36[0] : !llvm.struct<(ptr, ptr, i64)>
    %v.38 = llvm.insertvalue %x, %v.37[1] : !llvm.struct<(ptr, ptr, i64)>
    %v.39 = llvm.insertvalue %c0.4, %v.38[2] : !llvm.struct<(ptr, ptr, i64)>
    %v.40 = builtin.unrealized_conversion_cast %v.39 : !llvm.struct<(ptr, ptr, i64)> to memref<f32>
    %c0.5 = arith.constant 0 : index
    %v.41 = arith.index_cast %v.35 : i64 to index
    %v.42 = memref.reinterpret_cast %v.40 to offset: [%c0.5], sizes: [%v.41], strides: [1] : memref<f32> to memref<?xf32, strided<[1], offset: ?>>
    %v.43 = llvm.mlir.poison : !llvm.struct<(ptr, ptr, i64)>
    %c0.6 = arith.constant 0 : i64
    %v.44 = llvm.insertvalue %y, %v.43[0] : !llvm.struct<(ptr, ptr, i64)>
    %v.45 = llvm.insertvalue %y, %v.44[1] : !llvm.struct<(ptr, ptr, i64)>
    %v.46 = llvm.insertvalue %c0.6, %v.45[2] : !llvm.struct<(ptr, ptr, i64)>
    %v.47 = builtin.unrealized_conversion_cast %v.46 : !llvm.struct<(ptr, ptr, i64)> to memref<f32>
    %c0.7 = arith.constant 0 : index
    %v.48 = arith.index_cast %v.35 : i64 to index
    %v.49 = memref.reinterpret_cast %v.47 to offset: [%c0.7], sizes: [%v.48], strides: [1] : memref<f32> to memref<?xf32, strided<[1], offset: ?>>
    %c64.1 = arith.constant 64 : i64
    %c1 = arith.constant 1 : i64
    %c1.1 = arith.constant 1 : i64
    %c64.2 = arith.constant 64 : i64
    %c6 = arith.constant 6 : i64
    %c63 = arith.constant 63 : i64
    %v.50 = arith.shrsi %v.35, %c6 : i64
    %v.51 = arith.andi %v.35, %c63 : i64
    %c0.8 = arith.constant 0 : i64
    %v.52 = arith.cmpi ne, %v.51, %c0.8 : i64
    %v.53 = arith.extui %v.52 : i1 to i64
    %v.54 = arith.addi %v.50, %v.53 : i64
    %c1.2 = arith.constant 1 : i64
    %c1.3 = arith.constant 1 : i64
    %c0.9 = arith.constant 0 : i64
    %v.55 = arith.cmpi sge, %v.54, %c0.9 : i64
    %c2147483647 = arith.constant 2147483647 : i64
    %v.56 = arith.cmpi sle, %v.54, %c2147483647 : i64
    %v.57 = arith.andi %v.55, %v.56 : i1
    cf.cond_br %v.57, ^passed_block, ^failed_block
  ^failed_block:
    %v.58 = llvm.getelementptr %values[0] : (!llvm.ptr) -> !llvm.ptr, i64
    llvm.store %v.54, %v.58 : i64, !llvm.ptr
    %c1.4 = arith.constant 1 : i32
    cf.br ^exit_block(%c1.4 : i32)
  ^passed_block:
    %v.59 = llvm.mlir.poison : !llvm.struct<(ptr, struct<(struct<(i32)>)>)>
    %v.60 = memref.extract_aligned_pointer_as_index %v.42 : memref<?xf32, strided<[1], offset: ?>> -> index
    %v.61, %v.62, %v.63:1, %v.64:1 = memref.extract_strided_metadata %v.42 : memref<?xf32, strided<[1], offset: ?>> -> memref<f32>, index, index, index
    %v.65 = arith.index_cast %v.62 : index to i64
    %c4 = arith.constant 4 : i64
    %v.66 = arith.index_cast %v.60 : index to i64
    %v.67 = arith.muli %v.65, %c4 : i64
    %v.68 = arith.addi %v.66, %v.67 : i64
    %v.69 = llvm.inttoptr %v.68 : i64 to !llvm.ptr
    %v.70 = llvm.insertvalue %v.69, %v.59[0] : !llvm.struct<(ptr, struct<(struct<(i32)>)>)>
    %v.71 = arith.trunci %v.35 : i64 to i32
    %v.72 = llvm.insertvalue %v.71, %v.70[1, 0, 0] : !llvm.struct<(ptr, struct<(struct<(i32)>)>)>
    %v.73 = llvm.mlir.poison : !llvm.struct<(ptr, struct<(struct<(i32)>)>)>
    %v.74 = memref.extract_aligned_pointer_as_index %v.49 : memref<?xf32, strided<[1], offset: ?>> -> index
    %v.75, %v.76, %v.77:1, %v.78:1 = memref.extract_strided_metadata %v.49 : memref<?xf32, strided<[1], offset: ?>> -> memref<f32>, index, index, index
    %v.79 = arith.index_cast %v.76 : index to i64
    %c4.1 = arith.constant 4 : i64
    %v.80 = arith.index_cast %v.74 : index to i64
    %v.81 = arith.muli %v.79, %c4.1 : i64
    %v.82 = arith.addi %v.80, %v.81 : i64
    %v.83 = llvm.inttoptr %v.82 : i64 to !llvm.ptr
    %v.84 = llvm.insertvalue %v.83, %v.73[0] : !llvm.struct<(ptr, struct<(struct<(i32)>)>)>
    %v.85 = arith.trunci %v.35 : i64 to i32
    %v.86 = llvm.insertvalue %v.85, %v.84[1, 0, 0] : !llvm.struct<(ptr, struct<(struct<(i32)>)>)>
    %v.87 = arith.index_cast %v.54 : i64 to index
    %v.88 = arith.index_cast %c1.2 : i64 to index
    %v.89 = arith.index_cast %c1.3 : i64 to index
    %v.90 = arith.index_cast %c64.1 : i64 to index
    %v.91 = arith.index_cast %c1 : i64 to index
    %v.92 = arith.index_cast %c1.1 : i64 to index
    gpu.launch_func @kernels::@"scale_kernel" blocks in (%v.87, %v.88, %v.89) threads in (%v.90, %v.91, %v.92) args(%v.72 : !llvm.struct<(ptr, struct<(struct<(i32)>)>)>, %v.86 : !llvm.struct<(ptr, struct<(struct<(i32)>)>)>, %factor : f32)
    %c0.10 = arith.constant 0 : i32
    return %c0.10 : i32
  ^exit_block(%status: i32):
    return %status : i32
  }
}
