"""The machine code of kernels for NVIDIA GPUs, beside what nvcc makes of the same in CUDA C++.

    python benchmarks/sass.py [--quick] [--only PART] [--options "…"] [--nvcc "…"] [--json FILE]
                              [--triton] [--libnvvm FILE]

No GPU is needed, and nothing is timed: instructions are counted.  ptxas assembles both sides' PTX,
nvdisasm (nvidia-cuda-nvdisasm) shows them.  nvcc has its defaults: `-O3`, contraction, and indices
of 32 bits; `--nvcc="-fmad=false -DINDEX='long long'"` is a comparison at equal meaning.  NOPs and
the branch behind a kernel are not counted.  A hot loop is counted for a unit of its work, such as
a multiply-add, so that it does not matter how far either side has unrolled it; where one side has
unrolled the innermost loop whole, the loop around it is counted on both.

`--triton` counts programs of Triton as well; one of them computes several elements in a thread, of
which the table says how many.  `--libnvvm` makes PTX of ferrule's LLVM IR by NVIDIA's library, in
place of LLVM; it reads such IR for architectures from sm_100 on.
"""

from __future__ import annotations

import argparse
import json
import shlex
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from harness import Facts, Goal, Result, Skipped, arguments, finish
from sass_kernels.cases import MATHS, STUDY, Case
from sass_kernels.reading import Code, Loop, alike, read

from ferrule.compiler.cuda.assembly import assemble, find_program
from ferrule.compiler.cuda.disassembly import find_disassembler, sass_of
from ferrule.runtime.artefacts import KernelInfo
from ferrule.runtime.binaries.images import FoundImage

ARCHS: Final = ("sm_80", "sm_90a", "sm_100a")
PARTS: Final = {"study": STUDY, "maths": MATHS}
TWINS: Final = Path(__file__).parent / "sass_kernels" / "twins.cu"


@dataclass(frozen=True, slots=True)
class Counted:
    """A side of a kernel.  `hot` is the length of the hot loop for a unit; None without a loop."""

    total: int
    hot: float | None
    loads: int
    wide_loads: int
    stores: int
    wide_stores: int
    registers: int
    spills: int
    stack: int

    @property
    def accesses(self) -> str:
        """Loads and stores, each with the number of 16-byte ones after the slash."""
        return f"{self.loads}/{self.wide_loads} {self.stores}/{self.wide_stores}"


def counted(code: Code, info: KernelInfo, loop: Loop | None) -> Counted:
    """What a kernel has; `loop` is its hot loop."""
    return Counted(
        len(code.instructions),
        loop and loop.each,
        code.count(r"LDG|LD\b"),
        code.wide("LDG|LD"),
        code.count(r"STG|ST\b"),
        code.wide("STG|ST"),
        info.registers,
        info.spill_stores + info.spill_loads,
        info.stack,
    )


Sides = tuple[Counted, Counted]
"""Ours and nvcc's."""


def disassembled(ptx: str, arch: str) -> dict[str, tuple[Code, KernelInfo]]:
    """The kernels of PTX by name."""
    made = assemble(ptx, arch, ("-O3",))
    text = sass_of({}, [FoundImage("cubin", arch, tuple(made.kernels), made.cubin)])
    return {name: (code, made.kernels[name]) for name, code in read(text).items()}


def twins(nvcc: str, arch: str, options: Sequence[str]) -> dict[str, tuple[Code, KernelInfo]]:
    """All kernels of nvcc."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "twins.ptx"
        command = [nvcc, "-O3", "-ptx", f"-arch={arch}", *options, str(TWINS), "-o", str(path)]
        subprocess.run(command, check=True)
        return disassembled(path.read_text(encoding="utf-8"), arch)


def ours(case: Case, arch: str, options: str) -> tuple[Code, KernelInfo]:
    """Our side of a kernel."""
    function = case.compiled(f"--target cuda --gpu-arch {arch} {options}")
    return chosen(case, disassembled(function.inspect_ptx(), arch))


def chosen(case: Case, kernels: Mapping[str, tuple[Code, KernelInfo]]) -> tuple[Code, KernelInfo]:
    """The kernel of a program that the case counts."""
    # A kernel that is launched with other constants is there again: the first one is meant.  Where
    # there are two versions, that for tensors of which `int` reaches every element, as nvcc's.
    found = [name for name in kernels if case.kernel in name]
    name = next((name for name in found if name.endswith("_int32")), found[0])
    return kernels[name]


def compared(
    cases: Sequence[Case], nvcc: str, arch: str, wanted: argparse.Namespace
) -> Iterator[tuple[str, Sides]]:
    """Both sides of each kernel."""
    theirs = twins(nvcc, arch, shlex.split(wanted.nvcc))
    for case in cases:
        first, second = ours(case, arch, wanted.options), theirs[case.twin]
        loops = alike(first[0], second[0], case.unit, case.without) if case.unit else (None, None)
        print(f"{arch} {case.twin}", file=sys.stderr)
        yield case.twin, (counted(*first, loops[0]), counted(*second, loops[1]))


# ---- other roads ----


def by_triton(cases: Sequence[Case], arch: str, options: str) -> Facts:
    """Ours beside Triton's program, where there is one."""
    from sass_kernels.triton_twins import TWINS as PROGRAMS
    from sass_kernels.triton_twins import ptx

    lines = []
    for case in cases:
        if case.twin not in PROGRAMS:
            continue
        first = ours(case, arch, options)
        (second,) = disassembled(ptx(case.twin, arch), arch).values()
        loops = [
            side[0].hot_loop(case.unit, case.without) if case.unit else None
            for side in (first, second)
        ]
        a, b = counted(*first, loops[0]), counted(*second, loops[1])
        lines.append(
            (
                case.twin.replace("_", " "),
                *(str(a.total), str(b.total), str(PROGRAMS[case.twin].each)),
                *(shown(a.hot), shown(b.hot), shown(ratio(a.hot, b.hot))),
                *(str(a.registers), str(b.registers), a.accesses, b.accesses),
            )
        )
    columns = ("", "total", "Triton", "its elements a thread", "hot loop", "Triton", "ratio")
    columns += ("registers", "Triton", "loads, stores", "Triton")
    return Facts(f"Triton, {arch}", columns, tuple(lines))


def by_libnvvm(cases: Sequence[Case], arch: str, options: str, path: str) -> Facts:
    """The PTX of LLVM beside that of libNVVM, both of our LLVM IR."""
    from sass_kernels.nvvm import Library, NotTaken, recorded

    library, lines = Library(path), []
    for case in cases:
        name = case.twin.replace("_", " ")
        with recorded() as texts:
            first = ours(case, arch, f"--no-cache {options}")
        try:
            second = chosen(case, disassembled(library.ptx(texts[-1], arch), arch))
        except NotTaken as error:
            lines.append((name, str(len(first[0].instructions)), f"refused: {error}", *3 * ("–",)))
            continue
        a, b = (len(side[0].instructions) for side in (first, second))
        registers = (str(side[1].registers) for side in (first, second))
        lines.append((name, str(a), str(b), shown(b / a), *registers))
    columns = ("", "LLVM", "libNVVM", "libNVVM / LLVM", "registers, LLVM", "libNVVM")
    return Facts(f"libNVVM, {arch}", columns, tuple(lines))


def other_roads(cases: Sequence[Case], arch: str, wanted: argparse.Namespace) -> Iterator[Facts]:
    """The tables that are asked for."""
    if wanted.triton and cases is STUDY:
        yield by_triton(cases, arch, wanted.options)
    if wanted.libnvvm and arch == ARCHS[-1]:
        yield by_libnvvm(cases, arch, wanted.options, wanted.libnvvm)


# ---- showing ----


def ratio(ours: float | None, theirs: float | None) -> float | None:
    """None where a side has no loop."""
    return ours / theirs if ours and theirs else None


def shown(value: float | None) -> str:
    """A number of a table."""
    return "–" if value is None else f"{value:.2f}"


def table(title: str, rows: Mapping[str, Sides]) -> Facts:
    """Ours, nvcc's, and ratios."""
    columns = ("", "total", "nvcc", "ratio", "hot loop", "nvcc", "ratio")
    columns += ("registers", "nvcc", "spills", "loads, stores", "nvcc")
    return Facts(title, columns, tuple(_line(name, *sides) for name, sides in rows.items()))


def _line(name: str, a: Counted, b: Counted) -> tuple[str, ...]:
    return (
        name.replace("_", " "),
        *(str(a.total), str(b.total), shown(ratio(a.total, b.total))),
        *(shown(a.hot), shown(b.hot), shown(ratio(a.hot, b.hot))),
        *(str(a.registers), str(b.registers), f"{a.spills} / {b.spills}"),
        *(a.accesses, b.accesses),
    )


def means(rows: Mapping[str, Sides]) -> dict[str, float | None]:
    """Geometric means over nvcc, and the worst ratio."""
    totals = [a.total / b.total for a, b in rows.values()]
    hot = [r for a, b in rows.values() if (r := ratio(a.hot, b.hot))]
    registers = [a.registers / b.registers for a, b in rows.values()]
    return {
        "instructions": statistics.geometric_mean(totals),
        "instructions, the worst": max(totals),
        "hot loops": statistics.geometric_mean(hot) if hot else None,
        "hot loops, the worst": max(hot, default=None),
        "registers": statistics.geometric_mean(registers),
    }


LIMITS: Final = {
    "instructions": 1.05,
    "instructions, the worst": 1.15,
    "hot loops": 1.03,
    "hot loops, the worst": 1.15,
    "registers": 1.05,
}


def result(wanted: argparse.Namespace, nvcc: str) -> tuple[Result, dict[str, object]]:
    """The tables of each part and architecture, and all figures."""
    tables, goals, figures = [], [], {}
    for part, cases in PARTS.items():
        if wanted.only not in (None, part):
            continue
        for arch in ARCHS[1:2] if wanted.quick else ARCHS:
            rows = dict(compared(cases[:2] if wanted.quick else cases, nvcc, arch, wanted))
            tables.append(table(f"{part}, {arch}", rows))
            tables += other_roads(cases, arch, wanted)
            goals += [
                Goal(f"{part}, {arch}: {what} over nvcc's", LIMITS[what], value, "×")
                for what, value in means(rows).items()
            ]
            figures[f"{part}, {arch}"] = {
                name: [asdict(side) for side in sides] for name, sides in rows.items()
            }
    return Result(tuple(tables), tuple(goals)), figures


def missing() -> str:
    """What this machine lacks."""
    there = {"nvcc": find_program("nvcc"), "ptxas": find_program("ptxas")}
    there["nvdisasm (nvidia-cuda-nvdisasm)"] = " ".join(find_disassembler() or ())
    return ", ".join(name for name, found in there.items() if not found)


def main() -> None:
    """Measure, print, write."""
    wanted, rest = _extra().parse_known_args()
    wanted = argparse.Namespace(**{**vars(wanted), **vars(arguments(__doc__, rest, [*PARTS]))})
    lacks, nvcc = missing(), find_program("nvcc")
    if lacks or nvcc is None:
        skipped = Skipped("all kernels", f"there is no {lacks}")
        finish("sass", Result((), skipped=(skipped,)), wanted)
        return
    found, figures = result(wanted, nvcc)
    finish("sass", found, wanted)
    path = wanted.json or Path(__file__).parent / "results" / "sass.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    content["options"] = {"ferrule": wanted.options, "nvcc": wanted.nvcc}
    path.write_text(json.dumps({**content, "counted": figures}, indent=1) + "\n", encoding="utf-8")


def _extra() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--options", default="", help="ferrule's, besides the target")
    parser.add_argument("--nvcc", default="", help="nvcc's, besides -O3")
    parser.add_argument("--triton", action="store_true", help="programs of Triton as well")
    parser.add_argument("--libnvvm", help="libnvvm.so, of a toolkit or of nvidia-cuda-nvcc")
    return parser


if __name__ == "__main__":
    main()
