"""Functions from files and from the process: modules, tvm-ffi's loaders and its system library."""
