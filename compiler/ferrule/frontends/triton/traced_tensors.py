"""Tensors and descriptors in functions that are traced: see `tracing`."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Any, NoReturn

from ferrule import specs
from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.frontends.triton.paths import Path
from ferrule.frontends.triton.tracing import traced, undecided
from ferrule.specs import Tensor


@dataclass(frozen=True, slots=True)
class TracedTensor:
    """A tensor in a function that is traced: its sizes and strides, as PyTorch calls them.

    `filled` are the numbers that a hook has filled it with.
    """

    tensor: Tensor
    path: Path | None = None
    filled: list[int | float] = field(default_factory=list)

    @property
    def shape(self) -> tuple[Any, ...]:
        """Its sizes."""
        return tuple(traced(size, self.path) for size in self.tensor.shape)

    @property
    def ndim(self) -> int:
        """The number of dims."""
        return len(self.tensor.shape)

    @property
    def dtype(self) -> Any:
        """The dtype of its elements, as PyTorch has it where that is imported: what compares
        with its dtypes is meant to."""
        own = self.tensor.dtype
        return getattr(sys.modules.get("torch"), own.name, own)

    @property
    def itemsize(self) -> int:
        """The bytes of an element."""
        return self.tensor.dtype.itemsize

    def size(self, dim: int | None = None) -> Any:
        """All sizes, or one, as PyTorch says it."""
        return self.shape if dim is None else self.shape[dim]

    def stride(self, dim: int | None = None) -> Any:
        """All strides in elements, or one, as PyTorch says it."""
        strides = tuple(traced(step, self.path) for step in self.tensor.strides)
        return strides if dim is None else strides[dim]

    def numel(self) -> Any:
        """The number of elements."""
        return traced(self.tensor.numel, self.path)

    def dim(self) -> int:
        """The number of dims."""
        return self.ndim

    def is_contiguous(self) -> bool:
        """Whether it is compact, row by row, if its spec tells."""
        order = tuple(reversed(range(self.ndim)))
        if self.tensor.strides == specs.compact_strides(self.tensor.shape, order):
            return True
        raise CompileError(undecided(f"{self.tensor.name}.is_contiguous()"))

    def __getattr__(self, name: str) -> NoReturn:
        """What else PyTorch's tensors have."""
        if name.startswith("__"):
            raise AttributeError(name)
        raise CompileError(
            Diagnostic(
                f"{self.tensor.name}.{name} is not known while compiling",
                expected=".shape, .size(), .stride(), .numel(), .ndim, .dtype, .element_size()",
                hint='what is assumed of addresses says specialize="dispatch"'
                if name == "data_ptr"
                else None,
            )
        )

    def element_size(self) -> int:
        """The bytes of an element."""
        return self.itemsize

    def zero_(self) -> TracedTensor:
        """What a hook does to it: every launch does so."""
        return self.fill_(0)

    def fill_(self, value: int | float) -> TracedTensor:
        """What a hook does to it: every launch does so."""
        self.filled.append(value)
        return self


class TracedDescriptor:
    """A descriptor in a function that is traced; a hook may set `block_shape`, nothing else."""

    __slots__ = ("_block", "_tensor")

    def __init__(self, tensor: TracedTensor, block: tuple[int, ...]) -> None:
        self._tensor = tensor
        self._block = block

    @property
    def base(self) -> TracedTensor:
        """The tensor."""
        return self._tensor

    @property
    def shape(self) -> tuple[Any, ...]:
        """The tensor's sizes."""
        return self._tensor.shape

    @property
    def strides(self) -> Any:
        """The tensor's strides in elements."""
        return self._tensor.stride()

    @property
    def block_shape(self) -> list[int]:
        """What is copied at once."""
        return list(self._block)

    @block_shape.setter
    def block_shape(self, sizes: Any) -> None:
        self._block = tuple(int(getattr(size, "value", size)) for size in sizes)
