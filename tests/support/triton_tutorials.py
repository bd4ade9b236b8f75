"""The kernels of Triton's tutorials on an emulated GPU, compared with PyTorch.

`python triton_tutorials.py FOLDER sm_90a 03 06` executes what the files of a folder
have, `python/tutorials` of Triton's sources, and prints for each kernel the largest error and the
seconds; without names it executes all. Of the files only functions are taken: what they do when
they are run needs a GPU.
"""

from __future__ import annotations

import ast
import ctypes
import importlib.util
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
import triton
from cuda_device import data_ptr, forged_at
from torch_on_gpu import DLPACK_CODES
from triton.tools.tensor_descriptor import TensorDescriptor

import ferrule as fe
from ferrule.frontends import triton as frontend
from ferrule.runtime import use_allocator

# ---- kernels of a file that was not run ----


class Functions(ast.NodeTransformer):
    """Imports, functions and kernels of a module; kernels lose their autotuner."""

    def visit_Module(self, node: ast.Module) -> ast.Module:
        body = [each for each in map(self.visit, node.body) if each is not None]
        return ast.Module(body, [])

    def generic_visit(self, node: ast.AST) -> ast.AST | None:
        return None

    def visit_Import(self, node: ast.Import) -> ast.Import | None:
        return node if node.names[0].name.startswith("triton") else None

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.ImportFrom | None:
        return node if (node.module or "").startswith("triton") else None

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef | None:
        named = [ast.unparse(each) for each in node.decorator_list]
        if not any(each.startswith("triton.jit") for each in named):
            return None
        node.decorator_list = [ast.parse("triton.jit", mode="eval").body]
        return node


def kernels_of(folder: Path, number: str, to: Path) -> ModuleType:
    """The kernels of a tutorial, in a module of their own."""
    (path,) = folder.glob(f"{number}-*.py")
    tree = Functions().visit(ast.parse(path.read_text(encoding="utf-8")))
    made = to / f"tutorial_{number}.py"
    made.write_text(ast.unparse(ast.fix_missing_locations(tree)), encoding="utf-8")
    spec = importlib.util.spec_from_file_location(made.stem, made)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[made.stem] = module
    spec.loader.exec_module(module)
    return module


# ---- tensors and launches ----


@contextmanager
def allocating() -> Iterator[None]:
    """Memory that kernels ask for is that of the emulated GPU."""
    kept: dict[int, Any] = {}

    def allocate(size: int, align: int, kind: int, index: int) -> int:
        memory = fe.cuda.empty(size, "uint8")
        kept[data_ptr(memory)] = memory
        return data_ptr(memory)

    use_allocator(allocate, lambda address, kind, index: kept.pop(address, None) and None)
    try:
        yield
    finally:
        use_allocator(None, None)


class Gpu:
    """Tensors of PyTorch in the memory of an emulated GPU, and launches on them."""

    def __init__(self, arch: str) -> None:
        self.arch = arch
        self.capability = int(arch[3:].rstrip("a"))
        self._memory: list[Any] = []

    def tensor(self, values: torch.Tensor) -> torch.Tensor:
        """A copy that the GPU can read; PyTorch takes it for one of the CPU."""
        flat = values.contiguous().view(-1).view(torch.uint8)
        memory = fe.cuda.array(flat)
        self._memory.append(memory)
        whole = (ctypes.c_uint8 * flat.numel()).from_address(data_ptr(memory))
        return torch.frombuffer(whole, dtype=values.dtype).view(values.shape)

    def empty(self, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        return self.tensor(torch.full(shape, 7.0).to(dtype))

    def __call__(self, kernel: Any, grid: Any, *arguments: Any, **named: Any) -> None:
        """`kernel[grid](*arguments, **named)`."""
        numbers = tuple(grid) if isinstance(grid, tuple) else (grid,)
        function = frontend.compile(
            kernel, *arguments, grid=frontend.fixed(numbers), target=self.arch, **named
        )
        function(*(view(each) for each in arguments if passed(each)))


def passed(argument: Any) -> bool:
    """Whether callers of the compiled function give it."""
    return isinstance(argument, torch.Tensor | TensorDescriptor | int | float)


def view(argument: Any) -> Any:
    """What the compiled function takes."""
    if isinstance(argument, TensorDescriptor):
        argument = argument.base.as_strided(argument.shape, argument.strides)
    if not isinstance(argument, torch.Tensor):
        return argument
    size = argument.element_size()
    kind = DLPACK_CODES[argument.dtype] | 8 * size << 8 | 1 << 16
    return forged_at(argument.data_ptr(), tuple(argument.shape), argument.stride(), kind)


def error_of(found: torch.Tensor, wanted: torch.Tensor) -> float:
    """The largest difference to what float64 has, relative to the largest number."""
    exact = wanted.double()
    return ((found.double() - exact).abs().max() / exact.abs().max().clamp(min=1e-30)).item()


Found = Iterator[tuple[str, float, float]]
"""The kernel's name, its error, and what the error may be."""

HALF, SINGLE = 2e-3, 2e-6


def vector_add(gpu: Gpu, m: Any) -> Found:
    x, y = (gpu.tensor(torch.rand(98_432)) for _ in "xy")
    out = gpu.empty(98_432)
    gpu(m.add_kernel, 97, x, y, out, 98_432, BLOCK_SIZE=1024)
    yield "add_kernel", error_of(out, x + y), 0.0


def softmax(gpu: Gpu, m: Any) -> Found:
    x, out = gpu.tensor(torch.randn(203, 781)), gpu.empty(203, 781)
    how = {"BLOCK_SIZE": 1024, "num_stages": 2, "num_warps": 8}
    gpu(m.softmax_kernel, 50, out, x, 781, 781, 203, 781, **how)
    yield "softmax_kernel", error_of(out, torch.softmax(x.double(), 1)), SINGLE


def matmul(gpu: Gpu, m: Any) -> Found:
    for k, (bm, bn, bk, stages, warps) in ((512, (128, 256, 64, 3, 8)), (77, (64, 32, 32, 5, 2))):
        a, b = (gpu.tensor(torch.rand(s).half() - 0.5) for s in ((256, k), (k, 512)))
        c = gpu.empty(256, 512, dtype=torch.float16)
        sizes = {"BLOCK_SIZE_M": bm, "BLOCK_SIZE_N": bn, "BLOCK_SIZE_K": bk, "GROUP_SIZE_M": 8}
        how = {**sizes, "ACTIVATION": "leaky_relu", "num_stages": stages, "num_warps": warps}
        tiles = triton.cdiv(256, bm) * triton.cdiv(512, bn)
        gpu(m.matmul_kernel, tiles, a, b, c, 256, 512, k, k, 1, 512, 1, 512, 1, **how)
        wanted = torch.nn.functional.leaky_relu(a.double() @ b.double())
        yield f"matmul_kernel {bm}x{bn}x{bk}", error_of(c, wanted), HALF


def dropout(gpu: Gpu, m: Any) -> Found:
    x, out = gpu.tensor(torch.randn(5000)), gpu.empty(5000)
    keep = gpu.tensor((torch.rand(5000) > 0.5).to(torch.int32))
    gpu(m._dropout, 5, x, keep, out, 5000, 0.5, BLOCK_SIZE=1024)
    yield "_dropout", error_of(out, torch.where(keep == 1, x / 0.5, 0.0)), 0.0
    gpu(m._seeded_dropout, 5, x, out, 5000, 0.5, 123, BLOCK_SIZE=1024)
    again = gpu.empty(5000)
    gpu(m._seeded_dropout, 5, x, again, 5000, 0.5, 123, BLOCK_SIZE=1024)
    kept = out != 0
    assert torch.equal(out, again) and abs(kept.float().mean().item() - 0.5) < 0.03
    yield "_seeded_dropout", error_of(out, torch.where(kept, x / 0.5, 0.0)), 0.0


def layer_norm(gpu: Gpu, m: Any) -> Found:
    rows, n, groups = 151, 1000, 64
    x = gpu.tensor((-2.3 + 0.5 * torch.randn(rows, n)).half())
    w, b = (gpu.tensor(torch.rand(n).half()) for _ in "wb")
    dy = gpu.tensor((0.1 * torch.randn(rows, n)).half())
    y, dx = (gpu.empty(rows, n, dtype=torch.float16) for _ in "yx")
    mean, rstd = gpu.empty(rows), gpu.empty(rows)
    sizes = {"BLOCK_SIZE": 1024, "num_warps": 4}
    gpu(m._layer_norm_fwd_fused, rows, x, y, w, b, mean, rstd, n, n, 1e-5, **sizes)
    exact = [each.double().requires_grad_() for each in (x, w, b)]
    wanted = torch.nn.functional.layer_norm(exact[0], (n,), *exact[1:], 1e-5)
    yield "_layer_norm_fwd_fused", error_of(y, wanted.detach()), HALF
    wanted.backward(dy.double())
    dw, db = (gpu.tensor(torch.zeros(groups, n).half()) for _ in "wb")
    locks = gpu.tensor(torch.zeros(2 * groups, dtype=torch.int32))
    given = dx, dy, dw, db, x, w, mean, rstd, locks, n, n
    how = {"BLOCK_SIZE_N": 1024, "GROUP_SIZE_M": groups, "num_warps": 4}
    gpu(m._layer_norm_bwd_dx_fused, rows, *given, **how)
    yield "_layer_norm_bwd_dx_fused", error_of(dx, exact[0].grad), HALF
    last = gpu.empty(n, dtype=torch.float16), gpu.empty(n, dtype=torch.float16)
    sizes = {"BLOCK_SIZE_M": 32, "BLOCK_SIZE_N": 128}
    gpu(m._layer_norm_bwd_dwdb, triton.cdiv(n, 128), dw, db, *last, groups, n, **sizes)
    worst = max(error_of(a, b.grad) for a, b in zip(last, exact[1:], strict=True))
    yield "_layer_norm_bwd_dwdb", worst, 4 * HALF


def attention(gpu: Gpu, m: Any) -> Found:
    z, h, n, d, scale = 1, 2, 256, 64, 0.5
    q, k, v, do = (gpu.tensor((0.5 * torch.randn(z, h, n, d)).half()) for _ in "qkvo")
    exact = [each.double().requires_grad_() for each in (q, k, v)]
    for causal, on_device in ((True, False), (True, True), (False, False)):
        if on_device and gpu.capability < 90:
            continue
        o, lse = gpu.empty(z, h, n, d, dtype=torch.float16), gpu.empty(z, h, n)
        scores = exact[0] @ exact[1].transpose(2, 3) * scale
        if causal:
            scores = scores.masked_fill(torch.ones(n, n).tril() == 0, float("-inf"))
        wanted = torch.softmax(scores, -1) @ exact[2]
        given = [q, k, v, o]
        if gpu.capability >= 90 and not on_device:
            blocks = [[128, d], [64, d], [64, d], [128, d]]
            given = [
                TensorDescriptor(each, [z * h * n, d], [d, 1], block)
                for each, block in zip(given, blocks, strict=True)
            ]
        sizes = {"HEAD_DIM": d, "BLOCK_M": 128, "BLOCK_N": 64, "FP8_OUTPUT": False}
        how = {**sizes, "STAGE": 3 if causal else 1, "warp_specialize": False}
        how |= {"IS_HOPPER": gpu.capability == 90, "num_stages": 2, "num_warps": 4}
        named = {} if "N_CTX" not in constants_of(m._attn_fwd) else {"N_CTX": n}
        places = [] if named else [n]
        grid = triton.cdiv(n, 128), z * h
        gpu(m._attn_fwd, grid, scale, lse, z, h, *given, *places, **named, **how)
        which = ", causal" * causal + ", descriptors of its own" * on_device
        yield f"_attn_fwd{which}", error_of(o, wanted.detach()), HALF
    yield from attention_backward(gpu, m, (q, k, v, o, do, lse), exact, wanted, scale)


def attention_backward(
    gpu: Gpu, m: Any, tensors: Any, exact: Any, wanted: torch.Tensor, scale: float
) -> Found:
    q, k, v, o, do, lse = tensors
    z, h, n, d = q.shape
    wanted.backward(do.double())
    delta = gpu.empty(z, h, n)
    sizes = {"BLOCK_M": 128, "HEAD_DIM": d}
    gpu(m._attn_bwd_preprocess, (n // 128, z * h), o, do, delta, z, h, n, **sizes)
    yield "_attn_bwd_preprocess", error_of(delta, (o.double() * do.double()).sum(-1)), SINGLE
    scaled = gpu.tensor((k.double() * (scale * 1.4426950408889634)).half())
    grads = [gpu.empty(z, h, n, d, dtype=torch.float16) for _ in "qkv"]
    sizes = {"BLOCK_M1": 32, "BLOCK_N1": 128, "BLOCK_M2": 128, "BLOCK_N2": 32}
    how = {**sizes, "BLK_SLICE_FACTOR": 2, "HEAD_DIM": d, "num_warps": 4, "num_stages": 5}
    how |= {"CAUSAL": False} if "CAUSAL" in constants_of(m._attn_bwd) else {}
    given = q, scaled, v, scale, do, *grads, lse, delta, *q.stride(), h, n
    gpu(m._attn_bwd, (n // 128, 1, z * h), *given, **how)
    worst = max(error_of(a, b.grad) for a, b in zip(grads, exact, strict=True))
    yield "_attn_bwd", worst, 4 * HALF


def constants_of(kernel: Any) -> set[str]:
    return {each.name for each in kernel.params if each.is_constexpr}


def asin(gpu: Gpu, m: Any) -> Found:
    x, y = gpu.tensor(torch.rand(9843)), gpu.empty(9843)
    gpu(m.asin_kernel, 10, x, y, 9843, BLOCK_SIZE=1024)
    yield "asin_kernel", error_of(y, torch.asin(x.double())), SINGLE


def grouped(gpu: Gpu, m: Any) -> Found:
    for name in ("grouped_matmul_kernel", "grouped_matmul_tma_kernel"):
        is_tma = "tma" in name
        if is_tma and gpu.capability < 90:
            continue
        problems = []
        for size in (256, 128):
            a, b = (gpu.tensor(torch.rand(size, size).half()) for _ in "ab")
            given_b = gpu.tensor(b.T.contiguous()) if is_tma else b
            problems.append((a, given_b, gpu.empty(size, size, dtype=torch.float16), b))
        columns = [gpu.tensor(torch.tensor([p[i].data_ptr() for p in problems])) for i in range(3)]
        sizes = gpu.tensor(torch.tensor([p[0].shape[0] for p in problems for _ in range(3)]).int())
        how = {"NUM_SM": 4, "BLOCK_SIZE_M": 128, "BLOCK_SIZE_N": 128, "BLOCK_SIZE_K": 64}
        how |= {"FP8": False, "num_stages": 3} if is_tma else {"num_stages": 2}
        gpu(getattr(m, name), 4, *columns, sizes, sizes, 2, **how)
        yield name, max(error_of(c, a.double() @ b.double()) for a, _, c, b in problems), HALF


def persistent(gpu: Gpu, m: Any) -> Found:
    rows, columns, k, sms = 512, 256, 192, 3
    a, b = gpu.tensor(torch.randn(rows, k).half()), gpu.tensor(torch.randn(columns, k).half())
    wanted = a.double() @ b.double().T
    across = gpu.tensor(b.T.contiguous())
    sizes = {"BLOCK_SIZE_M": 128, "BLOCK_SIZE_N": 128, "BLOCK_SIZE_K": 64, "GROUP_SIZE_M": 8}
    how = {**sizes, "num_stages": 3, "num_warps": 8}
    tiles = (rows // 128) * (columns // 128)
    with_strides = rows, columns, k, k, 1, columns, 1, columns, 1
    boxes = [[128, 64], [128, 64], [128, 128]]

    def descriptors(c: torch.Tensor) -> list[TensorDescriptor]:
        given = zip((a, b, c), boxes, strict=True)
        return [TensorDescriptor.from_tensor(each, box) for each, box in given]

    runs: dict[str, tuple[int, Callable[[torch.Tensor], Any], dict[str, Any]]] = {
        "matmul_kernel": (tiles, lambda c: (a, across, c, *with_strides), {}),
        "matmul_kernel_persistent": (
            sms, lambda c: (a, across, c, *with_strides), {"NUM_SMS": sms}
        ),
    }  # fmt: skip
    if gpu.capability >= 90:
        plain = {"FP8_OUTPUT": False, "WARP_SPECIALIZE": False}
        whole = {"EPILOGUE_SUBTILE": False, "NUM_SMS": sms}
        half = {"EPILOGUE_SUBTILE": True, "NUM_SMS": sms, "WARP_SPECIALIZE": False}
        sized = lambda c: (*descriptors(c), rows, columns, k)  # noqa: E731
        runs |= {
            "matmul_kernel_tma": (tiles, sized, plain),
            "matmul_kernel_tma_persistent": (sms, sized, plain | whole),
            "matmul_kernel_descriptor_persistent": (
                sms, lambda c: (a, b, c, rows, columns, k), half | {"FLATTEN": False}
            ),
        }  # fmt: skip
    for name, (grid, given, more) in runs.items():
        c = gpu.empty(rows, columns, dtype=torch.float16)
        gpu(getattr(m, name), grid, *given(c), **how, **more)
        yield name, error_of(c, wanted), HALF


def dependent_add(gpu: Gpu, m: Any) -> Found:
    x, y = (gpu.tensor(torch.rand(9843)) for _ in "xy")
    out = gpu.empty(9843)
    pdl = gpu.capability >= 90
    gpu(m.add_kernel, 10, x, y, out, 9843, BLOCK_SIZE=1024, USE_GDC=pdl, launch_pdl=pdl)
    yield "add_kernel", error_of(out, x + y), 0.0


FP4 = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6])
"""The numbers of e2m1 by their bits."""


def drawn(rows: int, k: int, is_packed: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Numbers that 4 bits have, as bytes of two or as float8, and what they are."""
    codes = torch.randint(0, 16, (rows, k))
    if is_packed:
        return (codes[:, ::2] | codes[:, 1::2] << 4).to(torch.uint8), FP4[codes]
    return FP4[codes].to(torch.float8_e4m3fn), FP4[codes]


def scales(rows: int, k: int, size: int) -> tuple[torch.Tensor, torch.Tensor]:
    """A scale for so many numbers, in the order of the tensor cores, and one for each number."""
    packed = torch.randint(122, 132, (rows // 128, k // size // 4, 32, 4, 4), dtype=torch.uint8)
    values = packed
    if size == 16:
        packed = torch.rand(packed.shape).to(torch.float8_e4m3fn)
        values = packed.double()
    else:
        values = 2.0 ** (packed.double() - 127)
    plain = values.permute(0, 3, 2, 1, 4).reshape(rows, k // size)
    shape = 1, rows // 128, k // size // 4, 2, 256
    return packed.view(torch.uint8).reshape(shape).view(packed.dtype), plain.repeat_interleave(
        size, 1
    )


def block_scaled(kind: str, gpu: Gpu, m: Any) -> Found:
    rows, columns, k, bm, bn = 256, 256, 512, 128, 256
    bk, size = (256 if "fp4" in kind else 128), (16 if kind == "nvfp4" else 32)
    many = 2 if "fp4" in kind else 1, 1 if kind == "mxfp8" else 2
    a, left = drawn(rows, k, many[0] == 2)
    b, right = drawn(columns, k, many[1] == 2)
    (sa, scale_a), (sb, scale_b) = scales(rows, k, size), scales(columns, k, size)
    c = gpu.empty(rows, columns)
    rep_k = bk // size // 4
    boxes = [bm, bk // many[0]], [1, bm // 128, rep_k, 2, 256], [bn, bk // many[1]]
    blocks = *boxes, [1, bn // 128, rep_k, 2, 256], [bm, bn]
    given = [*map(gpu.tensor, (a, sa, b, sb)), c]
    described = [
        TensorDescriptor.from_tensor(each, box) for each, box in zip(given, blocks, strict=True)
    ]
    sizes = {"M": rows, "N": columns, "K": k, "output_type": 0}
    how = {**sizes, "ELEM_PER_BYTE_A": many[0], "ELEM_PER_BYTE_B": many[1], "VEC_SIZE": size}
    how |= {"BLOCK_M": bm, "BLOCK_N": bn, "BLOCK_K": bk, "rep_m": 1, "rep_n": 2, "rep_k": rep_k}
    how |= {"NUM_STAGES": 1, "disallow_acc_multi_buffer": True, "num_warps": 8}
    gpu(m.block_scaled_matmul_kernel, 2, *described, **how)
    wanted = (left.double() * scale_a) @ (right.double() * scale_b).T
    yield f"block_scaled_matmul_kernel {kind}", error_of(c, wanted), SINGLE


TUTORIALS: Mapping[str, Callable[[Gpu, Any], Found]] = {
    "01": vector_add,
    "02": softmax,
    "03": matmul,
    "04": dropout,
    "05": layer_norm,
    "06": attention,
    "07": asin,
    "08": grouped,
    "09": persistent,
    **{f"10 {kind}": partial(block_scaled, kind) for kind in ("mxfp8", "mixed", "mxfp4", "nvfp4")},
    "11": dependent_add,
}


def execute(folder: Path, arch: str, names: tuple[str, ...]) -> Iterator[str]:
    """A line for each kernel."""
    with tempfile.TemporaryDirectory() as place, fe.emulated_gpu(arch), allocating():
        for name, run in TUTORIALS.items():
            number = name[:2]
            if names and name not in names and number not in names:
                continue
            torch.manual_seed(0)
            yield from executed(name, run, kernels_of(folder, number, Path(place)), arch)


def executed(
    tutorial: str, run: Callable[[Gpu, Any], Found], module: Any, arch: str
) -> Iterator[str]:
    began = time.perf_counter()
    try:
        for name, error, most in run(Gpu(arch), module):
            now = time.perf_counter()
            said = "right" if error <= most else "wrong"
            yield f"{tutorial[:2]} {name}: {said}, {error:.1e}, {now - began:.1f} s"
            began = now
    except (fe.CudaError, fe.CompileError, RuntimeError, TypeError, AssertionError) as error:
        yield f"{tutorial}: {type(error).__name__}: {' '.join(str(error).split())[:900]}"


def main(folder: str, arch: str, *names: str) -> None:
    for line in execute(Path(folder), arch, names):
        print(line, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
