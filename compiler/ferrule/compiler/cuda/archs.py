"""The GPU architectures for which PTX can be made, and LLVM's machine for each.

LLVM gives a warning instead of an error for an unknown architecture, so the ones that it knows are
listed here, with the first LLVM that has them.  There is none below sm_50: the drivers that have
`cuLibraryLoadData` (CUDA 12) support nothing older.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Any, Final, TypeVar

import llvmlite.binding as llvm

from ferrule.compiler.errors import CompileError, Diagnostic

TRIPLE: Final = "nvptx64-nvidia-cuda"

SMALL_PARAMETERS: Final = 4096
"""The bytes of parameters that a kernel may have on every architecture and in every PTX version."""

NO_GPU: Final = "this machine has no GPU to take it from"
"""The end of an error if no architecture is given."""

_Arch = TypeVar("_Arch")
_Named = TypeVar("_Named")

_LLVM_20: Final = (
    *("sm_50", "sm_52", "sm_53", "sm_60", "sm_61", "sm_62", "sm_70", "sm_72", "sm_75", "sm_80"),
    *("sm_86", "sm_87", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_100a", "sm_101", "sm_101a"),
    *("sm_120", "sm_120a"),
)
_LLVM_22: Final = (
    *("sm_88", "sm_100f", "sm_101f", "sm_103", "sm_103a", "sm_103f", "sm_110", "sm_110a"),
    *("sm_110f", "sm_120f", "sm_121", "sm_121a", "sm_121f"),
)
_SINCE: Final = MappingProxyType(dict.fromkeys(_LLVM_20, 20) | dict.fromkeys(_LLVM_22, 22))


def known_archs() -> tuple[str, ...]:
    """The architectures that this LLVM knows, oldest first."""
    version = llvm.llvm_version_info[0]
    return tuple(sorted((arch for arch, since in _SINCE.items() if since <= version), key=_order))


def _order(arch: str) -> tuple[int, str]:
    digits = arch.removeprefix("sm_").rstrip("af")
    return int(digits), arch


def capability(arch: str) -> int:
    """The compute capability of an architecture, ten times: 90 for sm_90a."""
    return _order(arch)[0]


def check_arch(arch: str, where: str) -> str:
    """The architecture, if LLVM can make PTX for it.  Raises CompileError; `where` describes its
    source."""
    known = known_archs()
    if arch in known:
        return arch
    raise CompileError(
        Diagnostic(
            f"{where} is {arch!r}, but LLVM {llvm.llvm_version_info[0]} makes no PTX for that",
            expected=", ".join(known),
            hint=_advice(arch),
        )
    )


def _advice(arch: str) -> str | None:
    """The hint for an unknown architecture."""
    known = known_archs()
    found = re.fullmatch(r"(?:sm|compute)?[_-]?(\d+)([af]?)", arch.strip().lower())
    if found is None:
        near = difflib.get_close_matches(arch, known, n=1)
        return f"did you mean {near[0]}?" if near else None
    number, same = int(found[1]), f"sm_{found[1]}{found[2]}"
    plain = [each for each in known if each[-1].isdigit()]
    oldest, newest = plain[0], plain[-1]
    if number < _order(oldest)[0]:
        return f"the oldest that can be used is {oldest}"
    if number > _order(newest)[0]:
        return f"PTX for {newest} runs on newer GPUs as well"
    older = [each for each in plain if _order(each)[0] <= number]
    return f"did you mean {same if same in known else older[-1]}?"


def choose_archs(
    named: str | None, environ: Mapping[str, str], gpus: Callable[[], Sequence[tuple[int, int]]]
) -> tuple[str, ...]:
    """The architectures of the option (separated by commas); else of `FERRULE_GPU_ARCH`; else of
    the first GPU.

    Raises CompileError for one that LLVM cannot make PTX for, and if there is none to choose.
    """
    lacking = Diagnostic(
        f"the target cuda needs an architecture: {NO_GPU}",
        expected="--gpu-arch with one of " + ", ".join(known_archs()),
        hint='pass options="--target cuda --gpu-arch sm_90a", or set FERRULE_GPU_ARCH, or emulate '
        'a GPU: with fe.emulated_gpu("sm_90a")',
    )
    return choose("--gpu-arch", named, _listed, environ, gpus, lacking)


def choose(
    what: str,
    named: _Named | None,
    read: Callable[[str, _Named | str], tuple[_Arch, ...]],
    environ: Mapping[str, str],
    gpus: Callable[[], Sequence[tuple[int, int]]],
    lacking: Diagnostic,
) -> tuple[_Arch, ...]:
    """The given architectures; else those of `FERRULE_GPU_ARCH`; else the first GPU's; else the
    CompileError `lacking`.

    `read` parses architectures; its first argument describes their source: `what`, or the
    environment variable.
    """
    if named is not None:
        return read(what, named)
    variable = environ.get("FERRULE_GPU_ARCH")
    if variable:
        return read("the environment variable FERRULE_GPU_ARCH", variable)
    found = gpus()
    if not found:
        raise CompileError(lacking)
    return read("the architecture of the first GPU", arch_of(*found[0]))


def _listed(where: str, text: str) -> tuple[str, ...]:
    """The architectures of a list, each once."""
    if "," not in text:
        return (check_arch(text, where),)
    archs = [each.strip() for each in text.split(",")]
    return tuple(dict.fromkeys(check_arch(arch, f"one of {where}") for arch in archs))


def arch_of(major: int, minor: int) -> str:
    """The architecture for a device's compute capability: its own, with all its features, if this
    LLVM knows it; else the newest plain one that is not above it."""
    known = known_archs()
    exact = f"sm_{major}{minor}"
    if f"{exact}a" in known:
        return f"{exact}a"
    plain = [arch for arch in known if arch[-1].isdigit()]
    fitting = [arch for arch in plain if _order(arch)[0] <= major * 10 + minor]
    if not fitting:
        raise CompileError(
            f"the GPU has compute capability {major}.{minor}, but PTX is made for {plain[0]} "
            "and newer"
        )
    return fitting[-1]


def parameter_limit(arch: str) -> int:
    """The bytes of parameters that a kernel may have (PTX ISA, "Kernel Function Parameters")."""
    return 32764 if _order(arch)[0] >= 70 else SMALL_PARAMETERS


_NEEDED: Final = MappingProxyType(
    {
        re.compile(r"tensormap\.replace|proxy\.tensormap"): 85,
        re.compile(r"nvvm\.mma\.m16n8k32\.row\.col\.f32\.e[45]m[23]\."): 84,
        re.compile(r"nvvm\.mma\.m16n8k(?:16\.row\.col\.f32|\d+\.row\.col\.f16)\.e[45]m[23]\."): 87,
    }
)
"""The versions of PTX that LLVM text needs, where they are newer than those below."""
_SINCE_100: Final = MappingProxyType(dict.fromkeys(("sm_100", "sm_100a", "sm_101", "sm_101a"), 86))
"""The version in which PTX first had each of these.  Architectures from sm_100 on that are not here
came later, with versions that have everything asked for here."""


def features(
    arch: str, texts: Sequence[str], parameter_bytes: int = 0, *, narrow: bool = False
) -> str:
    """The features that the machine needs beyond the architecture for the LLVM text of kernels, for
    so many bytes of parameters, and for conversions of floats of 8 bits.

    More than `SMALL_PARAMETERS`, and these conversions on sm_89, need version 8.1 of PTX (CUDA
    12.1); LLVM writes the oldest version that knows the architecture, and since sm_100 that is
    newer.  Version 8.0 (CUDA 12.0) has all instructions of sm_90.  Version 6.5 (CUDA 10.2)
    has all of sm_75, with `ldmatrix`.  Older versions know these architectures, but lack some
    instructions; LLVM ends the process where a kernel has such an instruction.  Since version 8.5
    (CUDA 12.5) the strides that change a tensor map are in bytes.  `mma` of floats of 8 bits needs
    version 8.4 (CUDA 12.4), with a depth of 16 or sums of Float16 version 8.7 (CUDA 12.8).
    """
    number = _order(arch)[0]
    needed = [{75: 65, 90: 80}.get(number, 0)]
    needed += [v for word, v in _NEEDED.items() if any(word.search(text) for text in texts)]
    if parameter_bytes > SMALL_PARAMETERS or (number == 89 and narrow):
        needed.append(81)
    known = _SINCE_100.get(arch, 0 if number < 100 else math.inf)
    return f"+ptx{max(needed)}" if max(needed) > known else ""


@cache
def machine(arch: str, features: str = "", opt_level: int = 3) -> Any:
    """LLVM's machine for an architecture of `known_archs`.

    One serves all compilations: it has only facts about its target.
    """
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple(TRIPLE)
    return target.create_target_machine(cpu=arch, features=features, opt=opt_level)
