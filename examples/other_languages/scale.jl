# The exported library in Julia, through the package TVMFFI.jl.
#
#   python export.py
#   julia scale.jl
#
# The package loads libtvm_ffi and makes views of arrays. Those of Julia are column-major: a matrix
# fits a function that was compiled for that, as `fe.make_fake_compact_tensor` does by default.
using TVMFFI

mod = load_module("./scale.so")
a = Float32[0, 1, 2, 3]
b = similar(a)
mod["scale"](a, b, 2.5)
println(b)

x = Float32[1 2 3; 4 5 6]
y = similar(x)
mod["double_matrix"](x, y)
println(y)

try
    mod["scale"](a, b[1:3], 2.5)
catch error
    println(error)
end
