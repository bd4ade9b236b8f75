"""Tensors and descriptors in traced functions: see `tracing`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import field
from typing import Any, Final, NoReturn

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.frontends.examples import is_compact
from ferrule.frontends.strides import Strides
from ferrule.frontends.triton.traced.functions import traced, untraced
from ferrule.frontends.triton.traced.paths import Path
from ferrule.frontends.triton.traced.refusals import undecided
from ferrule.specs import Dim, Tensor
from ferrule.specs.deferred import dataclass
from ferrule.specs.expr import make

_DESCRIPTOR: Final = "triton.tools.tensor_descriptor", "TensorDescriptor"
_GLUON_DESCRIPTOR: Final = "triton.experimental.gluon.nvidia.hopper", "TensorDescriptor"


@dataclass(frozen=True, slots=True)
class SeenView:
    """A part or a view of a function's tensor, of which a launch gets the address.

    `tensor` has its name, rank and dtype, `size` gives a size or a stride: "shape" or "stride", and
    the dim.  `is_compact` gives None where only a call knows.
    """

    tensor: Tensor
    size: Callable[[str, int], Dim]
    is_compact: Callable[[], bool | None]


@dataclass(frozen=True, slots=True)
class TracedTensor:
    """A tensor in a traced function: its sizes and strides, by PyTorch's names.

    `filled` are the numbers with which a hook filled it.  Its first dim is
    the dim `first` of the parameter of its name; the sizes of a `view` are what that says.
    """

    tensor: Tensor
    path: Path | None = None
    filled: list[int | float] = field(default_factory=list)
    first: int = 0
    view: SeenView | None = None

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """PyTorch's class, for functions that test whether an argument is a tensor."""
        return _class("torch", "Tensor") or TracedTensor

    @property
    def shape(self) -> tuple[Any, ...]:
        """Its sizes."""
        return tuple(self._sizes("shape"))

    @property
    def ndim(self) -> int:
        """The number of dims."""
        return len(self.tensor.shape)

    @property
    def dtype(self) -> Any:
        """The dtype of its elements; PyTorch's if that is imported, so that comparisons with its
        dtypes work."""
        own = self.tensor.dtype
        return getattr(sys.modules.get("torch"), own.name, own)

    @property
    def itemsize(self) -> int:
        """The bytes of an element."""
        return self.tensor.dtype.itemsize

    def size(self, dim: int | None = None) -> Any:
        """All sizes, or one, by PyTorch's method."""
        return self.shape if dim is None else self.shape[dim]

    def stride(self, dim: int | None = None) -> Any:
        """All strides in elements, or one, by PyTorch's method."""
        if self.view is not None and dim is not None:
            axis = range(self.ndim)[dim]
            return traced(self.view.size("stride", axis), self.path)
        strides = Strides.of(self._sizes("stride"), self._read)
        return strides if dim is None else strides[dim]

    def _sizes(self, kind: str) -> Iterator[Any]:
        own = self.tensor.shape if kind == "shape" else self.tensor.strides
        for axis, dim in enumerate(own):
            size = dim if self.view is None else self.view.size(kind, axis)
            yield traced(size, self.path)

    def _read(self, axis: int) -> None:
        if self.path is not None:
            self.path.strides.add((self.tensor.name, self.first + axis))

    def numel(self) -> Any:
        """The number of elements."""
        count: Dim = 1
        for size in self.shape:
            count = make("mul", count, untraced(size))
        return traced(count, self.path)

    def dim(self) -> int:
        """The number of dims."""
        return self.ndim

    def is_contiguous(self) -> bool:
        """Whether it is compact in row-major order, if its spec determines that."""
        found = is_compact(self.tensor) if self.view is None else self.view.is_compact()
        if found:
            return True
        raise CompileError(undecided(f"{self.tensor.name}.is_contiguous()"))

    def __getattr__(self, name: str) -> NoReturn:
        """Refuses other attributes of PyTorch's tensors."""
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
        """Records the fill of a hook: every launch repeats it."""
        return self.fill_(0)

    def fill_(self, value: int | float) -> TracedTensor:
        """Records the fill of a hook: every launch repeats it."""
        self.filled.append(value)
        return self


class TracedDescriptor:
    """A descriptor in a traced function; a hook may only set `block_shape`."""

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
        """Triton's or Gluon's class: hooks test whether an argument is a descriptor."""
        return _class(*(_GLUON_DESCRIPTOR if self._is_gluon else _DESCRIPTOR)) or TracedDescriptor

    @property
    def base(self) -> TracedTensor:
        """The tensor."""
        return self._tensor

    @property
    def shape(self) -> tuple[Any, ...]:
        """The sizes of the described tensor."""
        return self._viewed.shape

    @property
    def strides(self) -> Any:
        """The strides of the described tensor, in elements."""
        return self._viewed.stride()

    @property
    def block_shape(self) -> list[int]:
        """The block that is copied at once."""
        return list(self._block)

    @block_shape.setter
    def block_shape(self, sizes: Any) -> None:
        self._block = tuple(int(getattr(size, "value", size)) for size in sizes)


def _class(module: str, name: str) -> type | None:
    """A class of a package that is imported already: only code that imported it can test for it."""
    found: type | None = getattr(sys.modules.get(module), name, None)
    return found
