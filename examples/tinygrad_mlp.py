"""A network of tinygrad as one function: its kernels, its temporaries, its shapes.

    pip install tinygrad
    python examples/tinygrad_mlp.py

tinygrad schedules the network and writes the kernels, as LLVM IR for the CPU and PTX for GPUs;
ferrule makes one function of them, which needs no tinygrad any more: checked, with memory between
the kernels from the caller's allocator, and on a GPU with one entering of the device.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

import ferrule as fe
from ferrule import compiler, specs
from ferrule.compiler import conventions

try:
    from tinygrad import Tensor
    from tinygrad.codegen import to_program
    from tinygrad.device import Compiler
    from tinygrad.helpers import Context, Target
    from tinygrad.renderer import Renderer
    from tinygrad.renderer.llvmir import CPULLVMRenderer
    from tinygrad.renderer.ptx import PTXRenderer
except ImportError as error:
    raise SystemExit(f"this example needs tinygrad 0.14: pip install tinygrad ({error})") from None

ALIGN = 16  # tinygrad writes 32, and uses what its vectors of four floats need


def renderer(target: str, arch: str) -> Renderer:
    """tinygrad's writer of kernels, without a compiler of its own and without a device."""
    kind = CPULLVMRenderer if target == "cpu" else PTXRenderer
    made = kind.__new__(kind)
    Renderer.__init__(made, Target(target.upper(), arch=arch))
    made.compiler, made.has_threads, made.tensor_cores = Compiler(), False, []
    return made


def source(program: Any, name: str, arch: str) -> str:
    """The text of a kernel under a name: tinygrad calls different kernels the same."""
    text = program.src[2].arg.replace(program.arg.function_name, name)
    text = text.replace("VERSION", "7.8").replace("TARGET", arch)
    text = re.sub(r"(local\d+)\[0\];", r"\1;", text)  # the address of an array, as PTX has it
    return re.sub(r"(?:\w+|<\d+ x \w+>)\*", "ptr", text).replace("align 32", f"align {ALIGN}")


def build(
    function: Callable[..., Tensor], *shapes: tuple[int, ...], target: str = "cpu", arch: str = ""
) -> fe.Function:
    """The TVM-FFI function of a function of tinygrad's tensors, float32 and of these shapes."""
    with Context(DEV="NULL", NO_MEMORY_PLANNER=1):
        given = [Tensor.empty(*shape) for shape in shapes]
        made = function(*given)
        linear, unknown = made.linear_with_vars()
        assert not unknown, "sizes are numbers here"
        programs = [to_program(call.src[0], renderer(target, arch)) for call in linear.src]

    def tensor(name: str, shape: tuple[int, ...]) -> specs.Tensor:
        return specs.Tensor(name, shape, "float32", device=target, align=ALIGN)

    names = function.__code__.co_varnames
    known = {t.uop.buf_uop: tensor(*each) for t, *each in zip(given, names, shapes, strict=False)}
    signature = specs.Signature(function.__name__, list(known.values()))
    known[made.uop.buf_uop] = out = tensor("out", made.shape)
    buffers = dict.fromkeys(buffer for call in linear.src for buffer in call.src[1:])
    inner = {each: tensor(f"t{each.arg.slot}", each.shape) for each in buffers if each not in known}
    known |= inner

    kernels = [f"k{at}_{program.arg.function_name}" for at, program in enumerate(programs)]
    texts = [source(*each, arch) for each in zip(programs, kernels, strict=True)]
    lists = [[known[each].data for each in call.src[1:]] for call in linear.src]
    steps: list[conventions.CallingConvention]
    if target == "cpu":
        host = conventions.HostCode.from_llvm(texts)
        steps = [
            conventions.CFunction(*each, code=host) for each in zip(kernels, lists, strict=True)
        ]
    else:
        device = fe.DeviceCode.joined(*map(fe.DeviceCode.from_ptx, texts))
        sizes = [(each.arg.global_size, each.arg.local_size) for each in programs]
        rows = zip(kernels, lists, sizes, strict=True)
        steps = [conventions.CudaLaunch(device, k, given, *size) for k, given, size in rows]
    call = conventions.Sequence(steps, temporaries=list(inner.values()))
    return compiler.build(signature, call, results=[out], doc=function.__doc__)


def mlp(x: Tensor, w1: Tensor, w2: Tensor) -> Tensor:
    """Two layers, and the probabilities of ten classes."""
    return ((x @ w1).relu() @ w2).softmax()


def reference(x: Any, w1: Any, w2: Any) -> Any:
    """The same by NumPy."""
    scores = np.exp(np.maximum(x @ w1, 0) @ w2)
    return scores / scores.sum(axis=1, keepdims=True)


SHAPES = ((8, 16), (16, 32), (32, 10))


def main() -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape, dtype=np.float32) / 4 for shape in SHAPES]
    function = build(mlp, *SHAPES)
    print(function.signature)
    error = np.abs(np.from_dlpack(function(*arrays)) - reference(*arrays)).max()
    print(f"on the CPU, largest difference to NumPy: {error:.1e}")
    on_gpu = build(mlp, *SHAPES, target="cuda", arch="sm_80")
    with fe.emulated_gpu("sm_80"):
        fe.cuda.use_as_allocator()
        result = fe.cuda.to_numpy(on_gpu(*map(fe.cuda.array, arrays)))
    print(f"on an emulated GPU: {np.abs(result - reference(*arrays)).max():.1e}")


if __name__ == "__main__":
    main()
