"""The library of examples/triton_library, small and built into a folder, and its operators.

`python emulated_row_operators.py FOLDER` prints what was right. The operators are those of the
file; what torch has no GPU for goes the way through an emulated one.
"""

from __future__ import annotations

import ctypes
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from emulated_rows import near_grad
from torch.nn import functional as F
from torch_on_gpu import OnGpu, call, near

import ferrule as fe
from ferrule.libraries.building import compile_library, write

NAMES = ("rms_norm", "layer_norm", "swiglu", "cross_entropy", "rope")


def build(folder: Path) -> Any:
    """The functions of a library for sm_80 and float32, which is in the folder afterwards."""
    import rows

    rows.ARCHS[:] = ["sm_80"]
    made = [getattr(rows, f"{name}{way}") for name in NAMES for way in ("", "_backward")]
    with_sizes = [each.name for each in rows.RECIPES if len(each.variants) > len(rows.DTYPES)]
    recipes = [
        fe.Recipe(each, [("fp32", 4096) if each.__name__ in with_sizes else ("fp32",)])
        for each in made
    ]
    operators = dict.fromkeys((each.name for each in recipes), ())
    library = fe.Library("rows", recipes, version="1.0.0", torch_ops=operators)
    functions = compile_library(library)
    write(library, functions, folder, "library")
    return functions


def with_the_current_stream(folder: Path) -> None:
    """What PyTorch for CUDA has and that for the CPU has not."""
    source, library = folder / "stream.c", folder / "libstream.so"
    source.write_text("int aoti_torch_get_current_cuda_stream(int i, void **s) { return i && s; }")
    subprocess.run(["cc", "-shared", "-fPIC", source, "-o", library], check=True)
    ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)


def through_the_gpu(name: str, function: Any) -> Callable[..., None]:
    """A kernel of the CPU: tensors go to the GPU; those that the schema says are written return."""
    schema = getattr(torch.ops.rows, name).default._schema
    written = [each.alias_info is not None for each in schema.arguments]

    def kernel(*arguments: Any) -> None:
        given = [OnGpu.of(e) if isinstance(e, torch.Tensor) else e for e in arguments]
        call(function, *given)
        for each, is_written in zip(given, written, strict=True):
            if is_written:
                each.host.copy_(each.back())

    return kernel


def same(found: Callable[..., Any], wanted: Callable[..., Any], *given: torch.Tensor) -> bool:
    """Whether two functions and their gradients agree."""
    ours, exact = ([each.detach().clone() for each in given] for _ in "ab")
    exact = [each.double() for each in exact]
    for each in (*ours, *exact):
        each.requires_grad_()
    y, z = found(*ours), wanted(*exact)
    grad = torch.randn(z.shape[-1:]).expand(z.shape)
    y.backward(grad)
    z.backward(grad.double())
    right = near(y.detach(), z.detach(), 4.0)
    return right and all(near_grad(a.grad, b.grad) for a, b in zip(ours, exact, strict=True))


def results(operators: Any) -> dict[str, bool]:
    x, w, b = torch.randn(3, 5, 80), torch.randn(80), torch.randn(80)
    wide = torch.randn(6, 100)[:, :80]
    target, angle = torch.tensor([1, 79, -100, 0, 5, 2]), torch.randn(5, 8)
    c, s = angle.cos(), angle.sin()

    def rotated(x: torch.Tensor) -> torch.Tensor:
        first, second = x.split(8, dim=-1)
        cosine, sine = c.to(x.dtype)[:, None], s.to(x.dtype)[:, None]
        return torch.cat([first * cosine - second * sine, second * cosine + first * sine], dim=-1)

    def loss(x: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(x, target, reduction="none")

    return {
        "rms_norm": same(operators.rms_norm, lambda x, w: F.rms_norm(x, (80,), w, 1e-6), x, w),
        "rows apart": same(operators.rms_norm, lambda x, w: F.rms_norm(x, (80,), w, 1e-6), wide, w),
        "layer_norm": same(
            operators.layer_norm, lambda x, w, b: F.layer_norm(x, (80,), w, b), x, w, b
        ),
        "swiglu": same(operators.swiglu, lambda a, b: F.silu(a) * b, x, x.flip(0)),
        "cross_entropy": same(lambda x: operators.cross_entropy(x, target), loss, wide),
        "rope": same(lambda x: operators.rope(x, c, s), rotated, torch.randn(2, 5, 3, 16)),
    }


def traced(operators: Any) -> bool:
    """`torch.compile` has the operators in one graph, forwards and backwards."""
    x, w = torch.randn(4, 80, requires_grad=True), torch.randn(80, requires_grad=True)
    whole = torch.compile(
        lambda x, w: operators.rms_norm(x * 2, w) + 1, fullgraph=True, backend="aot_eager"
    )
    y = whole(x, w)
    y.sum().backward()
    return near(y.detach(), F.rms_norm(x.double() * 2, (80,), w.double(), 1e-6) + 1, 4.0)


def main(folder: str) -> None:
    torch.manual_seed(0)
    with fe.emulated_gpu("sm_80"):
        functions = build(Path(folder))
        with_the_current_stream(Path(folder))
        import operators

        operators.load(folder)
        more = torch.library.Library("rows", "IMPL")
        for name, function in functions.items():
            more.impl(name, through_the_gpu(name, function), "CPU")
        for name, right in {**results(operators), "traced": traced(operators)}.items():
            print(f"{name}: {'right' if right else 'wrong'}")
        print(f"schema: {torch.ops.rows.swiglu.default._schema}")


if __name__ == "__main__":
    main(*sys.argv[1:])
