"""Launches of kernels on NVIDIA GPUs from generated code, through the driver alone.

`driver` describes libcuda for generated code; `state` is the record of an object about its images;
`support` is the cold code, the same in every object; `launch` is the hot code, emitted at each
launch.  Nothing here depends on the language of the kernels.
"""
