"""Modules of kind `ferrule.ptx`: kernels for a GPU as PTX or a cubin, launched through the driver.

`payload` is the format in an import tree, `arguments` packs the arguments of a call for the kernel,
`driver` calls libcuda, and `functions` joins them. A library that imports such a module needs only
`ferrule.runtime` to be loaded. Compiled host functions launch their kernels from generated code and
do not use this package.
"""
