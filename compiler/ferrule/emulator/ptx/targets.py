"""What `.target` of a text must be for its instructions, as NVIDIA's assembler asks for.

The rules are of the PTX manual's "Target ISA Notes"; what has no rule needs no more than sm_50, the
oldest GPU that is emulated. The first rule that a name fits holds.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from ferrule.emulator.ptx.module import Instruction, Module, PtxError

_RULES: Final = tuple(
    (re.compile(name), needed)
    for name, needed in (
        (r"wgmma\.|setmaxnreg\.", "sm_90a"),
        (r"redux\..*\.f32", "sm_100a"),
        (r"tensormap\.replace", "sm_90a"),
        (r"tensormap\.", "sm_90"),
        (r"(?:add|sub|mul|fma)\.(?:.*\.)?f32x2", "sm_100"),
        (r"cp\.(?:reduce\.)?async\.bulk|cp\.async\.mbarrier.*\.shared::cluster", "sm_90"),
        (r"st\.async|red\.async|multimem\.|griddepcontrol|elect\.|mapa|getctarank", "sm_90"),
        (r"barrier\.cluster|stmatrix|fence\.proxy\.(?:async|tensormap)|fence\.mbarrier", "sm_90"),
        (r"mbarrier\.(?:try_wait|expect_tx|complete_tx|arrive\.expect_tx)", "sm_90"),
        (r"\w+\..*(?:\.cluster\b|::cluster)", "sm_90"),
        (r"(?:atom|red)\.(?:.*\.)?(?:v[248]|b128|bf16|bf16x2)\b", "sm_90"),
        (r"(?:add|sub|mul|fma\S*\.oob|ex2|set|setp)\.(?:.*\.)?bf16", "sm_90"),
        (r"(?:add|min|max)\.(?:.*\.)?[su]16x2|(?:min|max)\.(?:.*\.)?relu\b", "sm_90"),
        (r"cvt\.r[nz]\..*satfinite\.tf32", "sm_100"),
        (r"tanh\.approx\.bf16", "sm_90"),
        (r"cvt\.(?:sat\.)?f32\.bf16|cvt\.rna\.(?:satfinite\.)?tf32", "sm_80"),
        (r"cvt\.r[mnpz]\.(?:relu\.)?(?:satfinite\.)?bf16(?:x2)?\.f32", "sm_80"),
        (r"cvt\.(?:.*\.)?(?:bf16|tf32)\b", "sm_90"),
        (r"(?:min|max)\.(?:.*\.)?xorsign", "sm_86"),
        (r"cvt\..*\.f16x2\.f32|(?:mov|selp)\.bf16", "sm_80"),
        (r"mma\..*\.e[45]m[23]|cvt\..*\.e[45]m[23]", "sm_89"),
        (r"mma\.sync\.aligned\.m8n8k4\..*f64", "sm_80"),
        (r"mma\.sync\.aligned\.(?:m16n8k(?:4|16|32|64|128|256)|m8n8k128\S*\.and)\.", "sm_80"),
        (r"mma\.sync\.aligned\.m16n8k8\..*(?:bf16|tf32)", "sm_80"),
        (r"mma\.sp|wmma\..*\.(?:bf16|tf32|f64|and\.popc)\b", "sm_80"),
        (r"wmma\..*\.(?:[su]4|b1)\b", "sm_75"),
        (r"wmma\..*\.[su]8\b", "sm_72"),
        (r"(?:atom|red)\..*\.L2::cache_hint", "sm_80"),
        (r"cp\.async|mbarrier\.|redux\.|createpolicy|applypriority|discard", "sm_80"),
        (r"(?:min|max|neg|abs|fma|cvt|tanh)\.(?:.*\.)?(?:bf16|bf16x2|tf32)\b", "sm_80"),
        (r"(?:min|max)\.(?:.*\.)?(?:f16|f16x2|NaN\.f32|xorsign\.\S*)$", "sm_80"),
        (r"fma\..*\.relu|cvt\..*\.relu", "sm_80"),
        (r"(?:ld|prefetch)\S*\.L2::(?:64B|128B|256B)", "sm_75"),
        (r"ldmatrix|movmatrix|mma\.|tanh\.approx|ex2\.approx\.(?:ftz\.)?f16", "sm_75"),
        (r"match\.|nanosleep|fence|(?:bmsk|szext)\.|wmma\.", "sm_70"),
        (r"(?:ld|st|atom|red)\.(?:.*\.)?(?:relaxed|acquire|release|acq_rel|mmio)\b", "sm_70"),
        (r"(?:atom|red)\..*\.(?:f16|b16)$", "sm_70"),
        (r"(?:mov|ld|st)\..*\.?b128$", "sm_70"),
        (r"dp[24]a\.", "sm_61"),
        (r"cvt\.pack\.", "sm_72"),
        (r"alloca|stacksave|stackrestore", "sm_52"),
        (r"(?:atom|red)\..*\.(?:f64|f16x2)$|(?:atom|red)\.(?:.*\.)?(?:cta|sys)\b", "sm_60"),
        (r"(?:add|sub|mul|fma|neg|abs|setp?)\.(?:.*\.)?f16(?:x2)?\b", "sm_53"),
    )
)
_OF_THREE: Final = 100, ""
_NUMBER: Final = re.compile(r"sm_(\d+)([af]?)")


def check_target(module: Module) -> None:
    """PtxError for an instruction that GPUs of the text's `.target` do not have."""
    found = _NUMBER.fullmatch(module.target)
    if found is None:
        return
    for function in module.functions:
        for item in function.body or ():
            if isinstance(item, Instruction):
                _check(item, module.target, int(found[1]))


def _check(item: Instruction, target: str, number: int) -> None:
    needed = _OF_THREE if _is_of_three(item) else needed_target(item.name)
    if needed is None or number > needed[0]:
        return
    if number < needed[0] or (needed[1] and not target.endswith(("a", "f"))):
        wanted = f"sm_{needed[0]}{needed[1]}"
        raise PtxError(f"{item.name} needs .target {wanted} or newer, not {target}", item.line)


def _is_of_three(item: Instruction) -> bool:
    """The least or largest of three numbers, whose name is that of two."""
    return item.opcode in ("min", "max") and len(item.operands) == 4


@lru_cache(maxsize=4096)
def needed_target(name: str) -> tuple[int, str] | None:
    """The number and the suffix of the oldest target that has an instruction; None for all."""
    for pattern, needed in _RULES:
        if pattern.match(name):
            found = _NUMBER.fullmatch(needed)
            assert found is not None
            return int(found[1]), found[2]
    return None
