"""What LLVM says about the loops of a function: its remarks, asked for in a process of its own."""
