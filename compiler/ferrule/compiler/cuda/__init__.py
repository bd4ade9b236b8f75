"""Launching kernels of an image on NVIDIA GPUs from generated code, through the driver alone.

`driver` is libcuda as generated code sees it; `state` what an object keeps about an image;
`support` the cold code, the same in every object; `launch` the hot code, emitted where it runs.
Nothing here knows what language the kernels were written in.
"""
