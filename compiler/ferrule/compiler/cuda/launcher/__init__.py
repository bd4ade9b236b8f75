"""The launcher as LLVM IR: hot code at each launch, cold functions that load and fail."""
