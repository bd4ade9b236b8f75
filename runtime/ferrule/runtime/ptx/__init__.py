"""Modules of kind `ferrule.ptx`: kernels for a GPU as PTX or a cubin, launched through the driver.

`payload` is what stands in an import tree, `arguments` packs what a call gives as the kernel wants
it, `driver` is libcuda, `functions` joins them. It is all Python: a library that imports such a
module loads with `ferrule.runtime` alone. Compiled host functions launch from generated code and
need none of this.
"""
