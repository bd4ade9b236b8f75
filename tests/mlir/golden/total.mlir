module {
  func.func @total(%x: memref<?xf32>, %out: memref<?xf32>) {
    %c0 = arith.constant 0 : index
    %cst = arith.constant 0.000000e+00 : f32
    %c1 = arith.constant 1 : index
    %cfalse = arith.constant false
    %c2147483647 = arith.constant 2147483647 : index
    %n = memref.dim %x, %c0 : memref<?xf32>
    %fits = arith.cmpi ule, %n, %c2147483647 : index
    cf.assert %fits, "x.shape[0] must be at most 2147483647"
    %found.1 = scf.for %i = %c0 to %n step %c1 iter_args(%found = %cst) -> (f32) {
      %load = memref.load %x[%i] : memref<?xf32> loc(#line36)
      %lt = arith.cmpf olt, %load, %cst : f32 loc(#line36)
      %found.2 = scf.if %lt -> (f32) {
        cf.assert %cfalse, "ValueError: a negative number at ..." loc(#line37)
        scf.yield %cst : f32
      } else {
        %load.1 = memref.load %x[%i] : memref<?xf32> loc(#line38)
        %sqrt = math.sqrt %load.1 : f32 loc(#line38)
        %add = arith.addf %found, %sqrt : f32 loc(#line38)
        scf.yield %add : f32
      }
      scf.yield %found.2 : f32 loc(#line35)
    } loc(#line35)
    memref.store %found.1, %out[%c0] : memref<?xf32> loc(#line39)
    return
  }
}
#line36 = loc("test_out_text.py":36:0)
#line37 = loc("test_out_text.py":37:0)
#line38 = loc("test_out_text.py":38:0)
#line35 = loc("test_out_text.py":35:0)
#line39 = loc("test_out_text.py":39:0)
