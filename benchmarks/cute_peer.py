"""Functions of CuTe DSL that do nothing, on CPU tensors: called as it compiled them, and loaded
again from the object that it wrote, without its Python around them.

It takes tensors of the CPU where they are fakes of the generic address space, and wants the name
of a GPU's architecture, which nothing here runs on.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import peers

ARCH: Final = "sm_90a"
Functions = Mapping[str, Callable[..., Any]]


def is_missing() -> bool:
    """Whether the package `nvidia-cutlass-dsl` is not installed."""
    return importlib.util.find_spec("cutlass") is None


def compiled() -> Functions:
    """By their names: `nothing`, `one_int`, and `take<n>` for so many 2-D float32 tensors."""
    os.environ.setdefault("CUTE_DSL_ARCH", ARCH)
    import cutlass
    from cutlass import cute

    def nothing() -> None: ...
    def one_int(i: cutlass.Int64) -> None: ...
    def take1(a: cute.Tensor) -> None: ...
    def take3(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor) -> None: ...
    def take8(
        a: cute.Tensor,
        b: cute.Tensor,
        c: cute.Tensor,
        d: cute.Tensor,
        e: cute.Tensor,
        f: cute.Tensor,
        g: cute.Tensor,
        h: cute.Tensor,
    ) -> None: ...

    def build(function: Callable[..., None], *examples: Any) -> Any:
        # Annotations that are text, as the first line of this file makes them, it does not read.
        names = {"cute.Tensor": cute.Tensor, "cutlass.Int64": cutlass.Int64, "None": None}
        said = function.__annotations__.items()
        function.__annotations__ = {name: names[text] for name, text in said}
        return cute.compile(cute.jit(function), *examples, options="--enable-tvm-ffi")

    def fake() -> Any:
        shape = (cute.sym_int(), cute.sym_int())
        space = cutlass.AddressSpace.generic
        make = cute.runtime.make_fake_compact_tensor
        return make(cutlass.Float32, shape, stride_order=(1, 0), memspace=space)

    found = {"nothing": build(nothing), "one_int": build(one_int, cutlass.Int64(1))}
    for count, function in zip(peers.COUNTS, (take1, take3, take8), strict=True):
        found[f"take{count}"] = build(function, *(fake() for _ in range(count)))
    return found


def reloaded(functions: Functions, folder: Path) -> Functions:
    """The same from files in this folder, which exists."""
    from cutlass import cute

    loaded = {}
    for name, function in functions.items():
        path = str(folder / f"{name}.o")
        function.export_to_c(path, name)  # type: ignore[attr-defined]
        module = cute.runtime.load_module(path, enable_tvm_ffi=True)
        loaded[name] = getattr(module, name)
    return loaded
