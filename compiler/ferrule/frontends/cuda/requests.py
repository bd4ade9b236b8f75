"""What a compiler of CUDA C++ is asked for, and what it makes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from ferrule.frontends.sources import Source

Form: TypeAlias = Literal["cubin", "ptx"]
FORMS: Final = ("cubin", "ptx")


@dataclass(frozen=True, slots=True)
class Request:
    """A source, the kernels in it by name or by name expressions, and how to compile them.

    `search` are the words for includes and macros, `flags` those that the user wrote.
    """

    source: Source
    kernels: tuple[str, ...]
    form: Form
    search: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    std: str = "c++17"
    fast_math: bool = False
    line_info: bool = False

    @property
    def words(self) -> tuple[str, ...]:
        """What NVRTC and nvcc call alike."""
        chosen = ("--use_fast_math",) if self.fast_math else ()
        lines = ("--generate-line-info",) if self.line_info else ()
        return (f"--std={self.std}", *self.search, *chosen, *lines, *self.flags)


@dataclass(frozen=True, slots=True)
class Made:
    """An image, the kernels' names in it by their expressions, and what the compiler said.

    `ptx` is the text that the image was assembled from, "" where that is not known.
    """

    image: bytes = field(repr=False)
    names: dict[str, str]
    log: str
    ptx: str = field(default="", repr=False)
