"""The MLIR text that people read, and that can be compiled again."""
