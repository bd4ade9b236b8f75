"""The machine code of the matrix products of `examples/cute`, beside CUTLASS's own kernels.

    python benchmarks/sass_gemms.py --cutlass FOLDER [--json FILE]

FOLDER is `include` of a checkout of CUTLASS, of which nothing is carried here:
`sass_kernels/cutlass_gemms.cu` names its templates, with the tiles, stages and warps of the
examples.  No GPU is needed, and nothing is timed: instructions are counted, of the whole kernel and
of its main loop, which is the loop with the most products of tensor cores.
"""

from __future__ import annotations

import argparse
import importlib.util
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from harness import Facts, Goal, Result, Skipped, arguments, finish
from sass import disassembled, missing, shown
from sass_kernels.reading import Code

from ferrule.compiler.cuda.assembly import find_program
from ferrule.runtime.artefacts import KernelInfo

HERE: Final = Path(__file__).resolve().parent
THEIRS: Final = HERE / "sass_kernels" / "cutlass_gemms.cu"
EXAMPLES: Final = HERE.parent / "examples" / "cute"
COUNTED: Final = {
    "products": "HMMA|HGMMA",
    "ldmatrix": "LDSM",
    "cp.async, 16 bytes": r"LDGSTS\b(?=.*\.128)",
    "cp.async, less": r"LDGSTS\b(?!.*\.128)",
    "TMA": "UTMALDG",
}
"""What is counted in the main loop; TMA in the whole kernel: another warp has a loop of its own."""
LIMIT: Final = 1.10


@dataclass(frozen=True, slots=True)
class Gemm:
    """A product: the file of the example, its function for an architecture, options of nvcc."""

    example: str
    arch: str
    compiled: Callable[[Any, str], Any]
    nvcc: tuple[str, ...] = ()


def _tensor_core(example: Any, options: str) -> Any:
    return example.compiled(options, tiles=example.LARGE)


def _wgmma(example: Any, options: str) -> Any:
    import ferrule as fe

    return fe.compile(example.gemm(), *example.examples(), options=options)


GEMMS: Final = (
    Gemm("tensor_core_gemm", "sm_80", _tensor_core, ("-DPRODUCT_SM80",)),
    Gemm("tma_wgmma_gemm", "sm_90a", _wgmma),
)


def ours(gemm: Gemm) -> tuple[Code, KernelInfo]:
    """The example's kernel: that for tensors of which 32 bits reach every element, if there are
    two, as CUTLASS's has strides of 32 bits in its loop."""
    place = importlib.util.spec_from_file_location(gemm.example, EXAMPLES / f"{gemm.example}.py")
    assert place is not None and place.loader is not None
    module = importlib.util.module_from_spec(place)
    sys.modules[gemm.example] = module
    place.loader.exec_module(module)
    function = gemm.compiled(module, f"--target cuda --gpu-arch {gemm.arch}")
    kernels = disassembled(function.inspect_ptx(), gemm.arch)
    narrow = [name for name in kernels if name.endswith("_int32")]
    return kernels[(narrow or list(kernels))[0]]


def theirs(gemm: Gemm, nvcc: str, headers: str) -> tuple[Code, KernelInfo]:
    """CUTLASS's kernel, assembled by the same ptxas."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "gemm.ptx"
        flags = ["-std=c++17", "-O3", "-DNDEBUG", "--expt-relaxed-constexpr", "-w", *gemm.nvcc]
        command = [nvcc, *flags, f"-I{headers}", "-ptx", f"-arch={gemm.arch}", str(THEIRS)]
        subprocess.run([*command, "-o", str(path)], check=True)
        (found,) = disassembled(path.read_text(encoding="utf-8"), gemm.arch).values()
    return found


def counts(code: Code, info: KernelInfo) -> dict[str, int]:
    """What a kernel has, by what it is called in the table."""
    loop = code.hot_loop(COUNTED["products"], "(?!)")
    assert loop is not None, "the kernel has no loop with products"
    body = Code(code.instructions[loop.place[0] : loop.place[1] + 1], ())
    found = {name: body.count(pattern) for name, pattern in COUNTED.items() if name != "TMA"}
    return {
        "main loop": len(body.instructions),
        **found,
        "TMA": code.count(COUNTED["TMA"]),
        "whole kernel": len(code.instructions),
        "stores": code.count("STG|ST\\b"),
        "stores, 16 bytes": code.wide("STG|ST"),
        "registers": info.registers,
        "spills": info.spill_stores + info.spill_loads,
    }


def compared(nvcc: str, headers: str) -> Result:
    """A table and a goal for each product."""
    tables, goals = [], []
    for gemm in GEMMS:
        a, b = counts(*ours(gemm)), counts(*theirs(gemm, nvcc, headers))
        tables.append(_table(gemm, a, b))
        for what in ("main loop", "whole kernel"):
            value = a[what] / b[what]
            goals.append(Goal(f"{gemm.example}, {what} over CUTLASS's", LIMIT, value, "×"))
    return Result(tuple(tables), tuple(goals))


def _table(gemm: Gemm, a: Mapping[str, int], b: Mapping[str, int]) -> Facts:
    lines = tuple(
        (name, str(a[name]), str(b[name]), shown(a[name] / b[name] if b[name] else None))
        for name in a
        if a[name] or b[name]
    )
    return Facts(f"{gemm.example}, {gemm.arch}", ("", "ferrule", "CUTLASS", "ratio"), lines)


def main() -> None:
    """Count, print, write."""
    extra = argparse.ArgumentParser(add_help=False)
    extra.add_argument("--cutlass", help="include of a checkout of CUTLASS")
    given, rest = extra.parse_known_args()
    wanted = arguments(__doc__, rest, [])
    lacks, nvcc = missing(), find_program("nvcc")
    if not given.cutlass:
        lacks = "folder of CUTLASS's headers (--cutlass)"
    if lacks or nvcc is None:
        skipped = Skipped("all products", f"there is no {lacks}")
        finish("sass_gemms", Result((), skipped=(skipped,)), wanted)
        return
    finish("sass_gemms", compared(nvcc, given.cutlass), wanted)


if __name__ == "__main__":
    main()
