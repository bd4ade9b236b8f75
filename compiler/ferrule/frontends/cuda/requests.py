"""The input of a compiler of CUDA C++, and its output."""

from __future__ import annotations

from dataclasses import field
from typing import Final, Literal, TypeAlias

from ferrule.frontends.sources import Source
from ferrule.specs.deferred import dataclass

Form: TypeAlias = Literal["cubin", "ptx"]
FORMS: Final = ("cubin", "ptx")


@dataclass(frozen=True, slots=True)
class Request:
    """A source, its kernels by name or name expression, and how to compile them.

    `search` are the options for include folders and macros, `flags` those of the user.
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
        """The options that NVRTC and nvcc have in common."""
        chosen = ("--use_fast_math",) if self.fast_math else ()
        lines = ("--generate-line-info",) if self.line_info else ()
        return (f"--std={self.std}", *self.search, *chosen, *lines, *self.flags)


@dataclass(frozen=True, slots=True)
class Made:
    """An image, the symbols of its kernels by their name expressions, and the compiler's output.

    `ptx` is the text from which the image was assembled, "" if it is not known.
    """

    image: bytes = field(repr=False)
    names: dict[str, str]
    log: str
    ptx: str = field(default="", repr=False)
