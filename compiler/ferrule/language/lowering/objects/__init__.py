"""Values of tvm-ffi in host functions: texts, containers, objects, and calls that take them."""
