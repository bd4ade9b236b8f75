module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @scale_kernel(%x: memref<?xf32>, %y: memref<?xf32>, %factor: f32) kernel attributes {nvvm.reqntid = array<i32: 64, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c64_i32 = arith.constant 64 : i32
      %n = memref.dim %x, %c0 : memref<?xf32>
      %block_id_x = gpu.block_id x
      %thread_id_x = gpu.thread_id x
      %block_id_x.2 = arith.index_cast %block_id_x : index to i32 loc(#line22)
      %mul = arith.muli %block_id_x.2, %c64_i32 : i32 loc(#line22)
      %thread_id_x.2 = arith.index_cast %thread_id_x : index to i32 loc(#line22)
      %add = arith.addi %mul, %thread_id_x.2 : i32 loc(#line22)
      %n.2 = arith.index_cast %n : index to i32 loc(#line23)
      %lt = arith.cmpi slt, %add, %n.2 : i32 loc(#line23)
      scf.if %lt {
        %add.2 = arith.index_cast %add : i32 to index loc(#line24)
        %load = memref.load %x[%add.2] : memref<?xf32> loc(#line24)
        %mul.1 = arith.mulf %factor, %load : f32 loc(#line24)
        memref.store %mul.1, %y[%add.2] : memref<?xf32> loc(#line24)
      }
      gpu.return
    }
  }
  func.func @scale(%x: memref<?xf32>, %y: memref<?xf32>, %factor: f32) {
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %c1 = arith.constant 1 : index
    %c2147483647 = arith.constant 2147483647 : index
    %n = memref.dim %x, %c0 : memref<?xf32>
    %n.1 = memref.dim %y, %c0 : memref<?xf32>
    %fits = arith.cmpi eq, %n.1, %n : index
    cf.assert %fits, "y.shape[0] must equal x.shape[0]"
    %fits.1 = arith.cmpi ule, %n, %c2147483647 : index
    cf.assert %fits.1, "x.shape[0] must be at most 2147483647"
    %size = arith.ceildivsi %n, %c64 : index loc(#line29)
    gpu.launch_func @kernels::@scale_kernel blocks in (%size, %c1, %c1) threads in (%c64, %c1, %c1) args(%x : memref<?xf32>, %y : memref<?xf32>, %factor : f32) loc(#line29)
    return
  }
}
#line22 = loc("test_out_text.py":22:0)
#line23 = loc("test_out_text.py":23:0)
#line24 = loc("test_out_text.py":24:0)
#line29 = loc("test_out_text.py":29:0)
