"""Kernels of one operator, in the kernel IR, and their PTX."""

from __future__ import annotations

from collections.abc import Callable

from ferrule import specs
from ferrule.compiler.cuda.code import DeviceCode
from ferrule.compiler.cuda.options import DeviceOptions
from ferrule.language.codegen.cuda.kernels import lower_device
from ferrule.language.ir import ops
from ferrule.language.ir.builder import Builder
from ferrule.language.ir.types import TensorType
from ferrule.specs import sym_int

Make = Callable[[Builder, ops.Value, ops.Value], ops.Value]


def lowered_for(program: ops.Program, arch: str) -> DeviceCode:
    """The kernels for one architecture."""
    return lower_device(program, DeviceOptions((arch,)))


def text_of(code: DeviceCode) -> str:
    """The PTX of code for one architecture."""
    (image,) = code.images
    return image.ptx


def kernel(name: str, source: specs.DType, target: specs.DType, make: Make) -> ops.Function:
    """`c[i] = make(a[i], b[i])` for the thread's i."""
    n = sym_int(symbol="n")
    a, b, c = (
        ops.Value(TensorType(dtype, (n,), (1,), dtype.itemsize), hint)
        for dtype, hint in ((source, "a"), (source, "b"), (target, "c"))
    )
    builder = Builder()
    with builder.region() as region:
        i = builder.special("thread_idx", 0)
        left, right = builder.load(a, (i,)), builder.load(b, (i,))
        builder.store(c, (i,), make(builder, left, right))
    return ops.Function(name, "kernel", (a, b, c), region.freeze())


def program(*kernels: ops.Function) -> ops.Program:
    """Kernels that nothing launches."""
    host = ops.Function("p", "host", (), ops.Region())
    symbols = {
        dim: dim.name
        for function in kernels
        for param in function.params
        if isinstance(param.type, TensorType)
        for dim in param.type.shape
        if isinstance(dim, specs.Sym)
    }
    return ops.Program("p", kernels, host, symbols)
