"""Lists the instructions of PTX texts that the emulated GPU refuses, with how often they occur.

    python tests/support/ptx_coverage.py FOLDER...       all *.ptx in them

Each text is read whole; each of its kernels is translated, and what is refused first is said.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from ferrule.emulator.instructions.table import found
from ferrule.emulator.machine import Machine
from ferrule.emulator.ptx.module import Instruction, Module, PtxError
from ferrule.emulator.ptx.parser import parse

FLOW = frozenset({"bra", "brx", "call", "ret", "exit", "trap"})
"""Opcodes that no form has, because the blocks are cut at them."""


def refused_names(module: Module) -> Counter[str]:
    """The names of all instructions that no form has."""
    names: Counter[str] = Counter()
    for function in module.functions:
        for item in function.body or ():
            if isinstance(item, Instruction) and item.opcode not in FLOW:
                names[item.name] += found(item.name) is None
    return +names


def refusal(text: str) -> str:
    """Why the text cannot be loaded, or nothing."""
    try:
        module = Machine("sm_90a", checks=frozenset({"memory"}), schedule=None).load(text)
        module.unload()
    except PtxError as error:
        return str(error).partition(": ")[2]
    return ""


def survey(paths: Iterable[Path]) -> tuple[Counter[str], Counter[str], int]:
    """Names that are refused, reasons why texts are, and how many texts there were."""
    names: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    count = 0
    for path in paths:
        text = path.read_text()
        count += 1
        try:
            names += refused_names(parse(text))
        except PtxError as error:
            reasons[str(error)] += 1
            continue
        why = refusal(text)
        if why:
            reasons[why] += 1
    return names, reasons, count


def main() -> None:
    folders = [Path(each) for each in sys.argv[1:]]
    names, reasons, count = survey(path for each in folders for path in sorted(each.glob("*.ptx")))
    print(f"{count} texts, {reasons.total()} refused")
    for name, number in names.most_common():
        print(f"{number:6} {name}")
    for reason, number in reasons.most_common():
        print(f"{number:6} texts: {reason}")


if __name__ == "__main__":
    main()
