"""The CUDA driver of emulated GPUs: a libcuda.so.1 that any program of this process finds.

`sharedlibrary` writes the library without a C compiler: its functions jump through a table, which
`loaded` fills with Python's. `exports` is how a function of Python becomes one of C; the functions
themselves are in `devices`, `contexts`, `libraries`, `launches`, `memory` and so on, over the
objects of `state`. All of it knows the machine by its interface alone.

Everything a program asks for is done before its call returns: a stream is an order that is kept
anyway. A call that is refused leaves a sentence, which cuGetErrorString says.
"""
