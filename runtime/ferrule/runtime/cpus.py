"""CPU features beyond the baseline of an architecture, and whether this machine has them.

Features have LLVM's names.  The features of this machine come from the operating system, so no LLVM
is needed, and a library for another processor is refused before any of its code runs.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Final

_LEVEL_2: Final = ("cx16", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3")
_LEVEL_3: Final = (*_LEVEL_2, "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe")
_LEVEL_4: Final = (*_LEVEL_3, "avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl")

LEVELS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {"x86-64-v2": _LEVEL_2, "x86-64-v3": _LEVEL_3, "x86-64-v4": _LEVEL_4}
)
"""The processor levels of the x86-64 psABI, and the features of each beyond the baseline."""

_X86_64: Final = {
    **{name: name for name in (*_LEVEL_4, "adx", "aes", "avx512ifma", "gfni", "vaes")},
    # Linux's own names, as in /proc/cpuinfo: Prescott's new instructions, advanced bit
    # manipulation.
    "sse3": "pni",
    "sse4.1": "sse4_1",
    "sse4.2": "sse4_2",
    "sahf": "lahf_lm",
    "bmi": "bmi1",
    "lzcnt": "abm",
    "pclmul": "pclmulqdq",
    "vpclmulqdq": "vpclmulqdq",
    "avx512vbmi": "avx512vbmi",
    "avxvnni": "avx_vnni",
    "sha": "sha_ni",
    **{
        f"avx512{name}": f"avx512_{name}"
        for name in ("bf16", "bitalg", "fp16", "vbmi2", "vnni", "vpopcntdq")
    },
}
_MORE_OF_X86_64: Final = {
    **{
        name: name
        for name in (
            *("clflushopt", "clwb", "clzero", "cldemote", "enqcmd", "fma4", "fsgsbase", "invpcid"),
            *("movdir64b", "movdiri", "mwaitx", "pku", "rdpid", "rdseed", "serialize", "sse4a"),
            *("tbm", "waitpkg", "wbnoinvd", "xop", "xsave", "xsavec", "xsaveopt", "xsaves"),
        )
    },
    "crc32": "sse4_2",
    "prfchw": "3dnowprefetch",
    "rdrnd": "rdrand",
    "shstk": "user_shstk",
    "avx512vp2intersect": "avx512_vp2intersect",
    "avxifma": "avx_ifma",
    "avxneconvert": "avx_ne_convert",
    "avxvnniint8": "avx_vnni_int8",
    "cmpccxadd": "cmpccxadd",
    "amx-tile": "amx_tile",
    "amx-int8": "amx_int8",
    "amx-bf16": "amx_bf16",
    "amx-fp16": "amx_fp16",
}
"""Further features, which foreign code may need; ferrule does not generate code for them."""
_AARCH64: Final = {
    "bf16": "bf16",
    "dotprod": "asimddp",
    "fullfp16": "asimdhp",
    "i8mm": "i8mm",
    "lse": "atomics",
    "rdm": "asimdrdm",
    "sve": "sve",
    "sve2": "sve2",
}
FEATURES: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {"x86_64": MappingProxyType(_X86_64), "aarch64": MappingProxyType(_AARCH64)}
)
"""By architecture, the features that code may be compiled for, and Linux's names of them."""

_MORE_OF_AARCH64: Final = {
    "aes": "aes",
    "crc": "crc32",
    "fp16fml": "asimdfhm",
    "rcpc": "lrcpc",
    "sha2": "sha2",
    "sha3": "sha3",
    "ssbs": "ssbs",
}
_MORE: Final = {"x86_64": _MORE_OF_X86_64, "aarch64": _MORE_OF_AARCH64}

_CPUINFO: Final = re.compile(r"^(?:flags|Features)\s*:(.*)$", re.M)


_ARCHITECTURES: Final = {"amd64": "x86_64", "arm64": "aarch64"}


def host_architecture() -> str:
    """The first word of this machine's triple."""
    word = platform.machine().lower()
    return _ARCHITECTURES.get(word, word)


def host_features(architecture: str) -> frozenset[str]:
    """The features that this machine has; an empty set if the system does not tell.

    If processors differ, only the features that all of them have count.
    """
    return _known(FEATURES.get(architecture, {}))


def _known(names: Mapping[str, str]) -> frozenset[str]:
    """The subset of some features (LLVM's names to Linux's) that all processors here have."""
    return frozenset(name for name, word in names.items() if word in _words())


@cache
def _words() -> frozenset[str]:
    """The feature words that Linux lists for all processors of this machine."""
    try:
        lines = _CPUINFO.findall(Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    except OSError:
        return frozenset()
    return frozenset.intersection(*(frozenset(line.split()) for line in lines or [""]))


def lacking(features: Iterable[str], architecture: str) -> list[str]:
    """The subset of these features that this machine does not have, as far as the system tells."""
    here = host_features(architecture) | _known(_MORE.get(architecture, {}))
    return sorted(set(features) - here)
