module {
  func.func @ferrule_body(%values: !llvm.ptr, %x: !llvm.ptr, %out: !llvm.ptr, %n: i32, %m: i32) -> i32 {
    %v = arith.extsi %n : i32 to i64
    %v.1 = arith.extsi %m : i32 to i64
    %v.2 = llvm.mlir.poison : !llvm.struct<(ptr, ptr, i64)>
    %c0 = arith.constant 0 : i64
    %v.3 = llvm.insertvalue %x, %v.2[0] : !llvm.struct<(ptr, ptr, i64)>
    %v.4 = llvm.insertvalue %x, %v.3[1] : !llvm.struct<(ptr, ptr, i64)>
    %v.5 = llvm.insertvalue %c0, %v.4[2] : !llvm.struct<(ptr, ptr, i64)>
    %v.6 = builtin.unrealized_conversion_cast %v.5 : !llvm.struct<(ptr, ptr, i64)> to memref<f32>
    %c0.1 = arith.constant 0 : index
    %v.7 = arith.index_cast %v : i64 to index
    %v.8 = memref.reinterpret_cast %v.6 to offset: [%c0.1], sizes: [%v.7], strides: [1] : memref<f32> to memref<?xf32, strided<[1], offset: ?>>
    %v.9 = llvm.mlir.poison : !llvm.struct<(ptr, ptr, i64)>
    %c0.2 = arith.constant 0 : i64
    %v.10 = llvm.insertvalue %out, %v.9[0] : !llvm.struct<(ptr, ptr, i64)>
    %v.11 = llvm.insertvalue %out, %v.10[1] : !llvm.struct<(ptr, ptr, i64)>
    %v.12 = llvm.insertvalue %c0.2, %v.11[2] : !llvm.struct<(ptr, ptr, i64)>
    %v.13 = builtin.unrealized_conversion_cast %v.12 : !llvm.struct<(ptr, ptr, i64)> to memref<f32>
    %c0.3 = arith.constant 0 : index
    %v.14 = arith.index_cast %v.1 : i64 to index
    %v.15 = memref.reinterpret_cast %v.13 to offset: [%c0.3], sizes: [%v.14], strides: [1] : memref<f32> to memref<?xf32, strided<[1], offset: ?>>
    %v.16 = arith.trunci %v : i64 to i32
    %c0.4 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %cst = arith.constant 0x00000000 : f32
    %v.17 = arith.extsi %c0.4 : i32 to i64
    %v.18 = arith.extsi %v.16 : i32 to i64
    %v.19 = arith.extsi %c1 : i32 to i64
    %c1.1 = arith.constant 1 : i64
    %c0.5 = arith.constant 0 : i32
    %v.20:3 = scf.while (%i = %v.17, %i.1 = %c0.5, %i.2 = %cst) : (i64, i32, f32) -> (i64, i32, f32) {
      %v.21 = arith.cmpi slt, %i, %v.18 : i64
      %v.22 = arith.cmpi eq, %i.1, %c0.5 : i32
      %v.23 = arith.andi %v.21, %v.22 : i1
      scf.condition(%v.23) %i, %i.1, %i.2 : i64, i32, f32
    } do {
    ^bb0(%i.3: i64, %i.4: i32, %i.5: f32):
      %v.24 = arith.trunci %i.3 : i64 to i32
      %v.25:2 = scf.execute_region -> (i32, f32) {
        %v.26 = arith.extsi %v.24 : i32 to i64
        %v.27 = arith.index_cast %v.26 : i64 to index
        %load = memref.load %v.8[%v.27] : memref<?xf32, strided<[1], offset: ?>>
        %cst.1 = arith.constant 0x00000000 : f32
        %v.28 = arith.cmpf olt, %load, %cst.1 : f32
        %v.29:2 = scf.if %v.28 -> (i32, f32) {
          %v.30:2 = scf.execute_region -> (i32, f32) {
            %cfalse = arith.constant false
            %v.31 = arith.extsi %v.24 : i32 to i64
            cf.cond_br %cfalse, ^passed_block, ^failed_block
          ^failed_block:
            %v.32 = llvm.getelementptr %values[0] : (!llvm.ptr) -> !llvm.ptr, i64
            llvm.store %v.31, %v.32 : i64, !llvm.ptr
            %c1.2 = arith.constant 1 : i32
            cf.br ^exit_block.2(%c1.2 : i32)
          ^passed_block:
            %cst.2 = arith.constant 0x00000000 : f32
            %c0.6 = arith.constant 0 : i32
            scf.yield %c0.6, %cst.2 : i32, f32
          ^exit_block.2(%status: i32):
            %v.33 = ub.poison : f32
            scf.yield %status, %v.33 : i32, f32
          }
          scf.yield %v.30#0, %v.30#1 : i32, f32
        } else {
          %v.34:2 = scf.execute_region -> (i32, f32) {
            %v.35 = arith.extsi %v.24 : i32 to i64
            %v.36 = arith.index_cast %v.35 : i64 to index
            %load.1 = memref.load %v.8[%v.36] : memref<?xf32, strided<[1], offset: ?>>
            %v.37 = math.sqrt %load.1 : f32
            %v.38 = arith.addf %i.5, %v.37 : f32
            %c0.7 = arith.constant 0 : i32
            scf.yield %c0.7, %v.38 : i32, f32
          }
          scf.yield %v.34#0, %v.34#1 : i32, f32
        }
        %c0.8 = arith.constant 0 : i32
        %v.39 = arith.cmpi eq, %v.29#0, %c0.8 : i32
        cf.cond_br %v.39, ^passed_block.1, ^exit_block.1(%v.29#0 : i32)
      ^passed_block.1:
        %c0.9 = arith.constant 0 : i32
        scf.yield %c0.9, %v.29#1 : i32, f32
      ^exit_block.1(%status.1: i32):
        %v.40 = ub.poison : f32
        scf.yield %status.1, %v.40 : i32, f32
      }
      %v.41 = arith.addi %i.3, %c1.1 : i64
      scf.yield %v.41, %v.25#0, %v.25#1 : i64, i32, f32
    }
    %c0.10 = arith.constant 0 : i32
    %v.42 = arith.cmpi eq, %v.20#1, %c0.10 : i32
    cf.cond_br %v.42, ^passed_block.2, ^exit_block(%v.20#1 : i32)
  ^passed_block.2:
    %c0.11 = arith.constant 0 : i32
    %v.43 = arith.extsi %c0.11 : i32 to i64
    %v.44 = arith.index_cast %v.43 : i64 to index
    memref.store %v.20#2, %v.15[%v.44] : memref<?xf32, strided<[1], offset: ?>>
    %c0.12 = arith.constant 0 : i32
    return %c0.12 : i32
  ^exit_block(%status.2: i32):
    return %status.2 : i32
  }
}
