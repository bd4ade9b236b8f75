"""The functions of `fe.arch`: threads, barriers, asynchronous copies, tensor cores."""
