"""Tensors and descriptors in functions that are traced: see `tracing`."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.frontends.examples import is_compact
from ferrule.frontends.triton.paths import Path
from ferrule.frontends.triton.tracing import traced, undecided
from ferrule.specs import Tensor

_DESCRIPTOR: Final = "triton.tools.tensor_descriptor", "TensorDescriptor"
_GLUON_DESCRIPTOR: Final = "triton.experimental.gluon.nvidia.hopper", "TensorDescriptor"


@dataclass(frozen=True, slots=True)
class TracedTensor:
    """A tensor in a function that is traced: its sizes and strides, as PyTorch calls them.

    `filled` are the numbers that a hook has filled it with.
    """

    tensor: Tensor
    path: Path | None = None
    filled: list[int | float] = field(default_factory=list)

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """PyTorch's, for functions that ask whether an argument is a tensor."""
        return _class("torch", "Tensor") or TracedTensor

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
        if is_compact(self.tensor):
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

    __slots__ = ("_block", "_is_gluon", "_tensor", "_viewed")

    def __init__(
        self,
        tensor: TracedTensor,
        block: tuple[int, ...],
        viewed: TracedTensor | None = None,
        *,
        is_gluon: bool = False,
    ) -> None:
        self._tensor = tensor
        self._viewed = viewed or tensor
        self._block = block
        self._is_gluon = is_gluon

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """Triton's or Gluon's: hooks ask whether an argument is a descriptor."""
        return _class(*(_GLUON_DESCRIPTOR if self._is_gluon else _DESCRIPTOR)) or TracedDescriptor

    @property
    def base(self) -> TracedTensor:
        """The tensor."""
        return self._tensor

    @property
    def shape(self) -> tuple[Any, ...]:
        """The sizes of what it describes."""
        return self._viewed.shape

    @property
    def strides(self) -> Any:
        """The strides of what it describes, in elements."""
        return self._viewed.stride()

    @property
    def block_shape(self) -> list[int]:
        """What is copied at once."""
        return list(self._block)

    @block_shape.setter
    def block_shape(self, sizes: Any) -> None:
        self._block = tuple(int(getattr(size, "value", size)) for size in sizes)


def _class(module: str, name: str) -> type | None:
    """A class of a package, where that is imported: nobody asks for it elsewhere."""
    found: type | None = getattr(sys.modules.get(module), name, None)
    return found
