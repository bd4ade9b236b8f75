"""The generated `__tvm_ffi_<name>`: decodes and checks every argument, then makes the call."""
