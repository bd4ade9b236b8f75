"""The code around products of warpgroups: what is computed once, and what for each of them."""

from __future__ import annotations

import importlib.util
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

import ferrule as fe

EXAMPLE = Path(__file__).parents[2] / "examples" / "cute" / "tma_wgmma_gemm.py"


@cache
def ptx() -> str:
    place = importlib.util.spec_from_file_location("tma_wgmma_gemm", EXAMPLE)
    assert place is not None and place.loader is not None
    module: Any = importlib.util.module_from_spec(place)
    sys.modules["tma_wgmma_gemm"] = module
    place.loader.exec_module(module)
    options = "--target cuda --gpu-arch sm_90a --index-bitwidth 32"
    return fe.compile(module.gemm(), *module.examples(), options=options).inspect_ptx()


def test_the_address_of_memory_is_put_into_descriptors_once() -> None:
    """The four products of a stage have the address of A's tiles and that of B's in common."""
    assert ptx().count("wgmma.mma_async") == 4
    cut = re.findall(r"bfe\.u32 \S+ %r\d+, 4, 14|and\.b32 .*, (?:262143|16383|16382|16320);", ptx())
    assert len(cut) <= 2, cut
    assert "bfe.u64" not in ptx()


def test_tiles_are_divided_in_32_bits() -> None:
    """Sizes of tensors are numbers of 64 bits, whose division takes a hundred instructions."""
    divisions = re.findall(r"\b(?:div|rem)\.\w+", ptx())
    assert divisions, "the scheduler divides"
    assert not [each for each in divisions if each.endswith("64")]
