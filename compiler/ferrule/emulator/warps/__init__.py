"""A kernel as LLVM that executes a warp: `flow` has its blocks, `translate` writes the text."""
