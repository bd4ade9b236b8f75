"""Values of other packages: tensors through DLPack, objects of tvm-ffi, memory of tensors."""
