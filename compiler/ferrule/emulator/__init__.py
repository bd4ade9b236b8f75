"""GPUs without a GPU: PTX is executed by the processor, behind a libcuda of our own.

`machine` executes kernels; `driver` is the CUDA driver that programs find; `gpu` switches it on.
Nothing here is imported before somebody asks for an emulated GPU.
"""
