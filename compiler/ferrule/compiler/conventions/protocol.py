"""The protocol of calling conventions, and its check."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Protocol, get_args

from ferrule.compiler.cuda.code import DeviceCode
from ferrule.specs import Condition, Param, Tensor

if TYPE_CHECKING:
    from ferrule.compiler.conventions.base import Call


class CallingConvention(Protocol):
    """How a body calls one thing: a kernel, a C function, …"""

    @property
    def when(self) -> Condition | None:
        """The condition for the call, from its sizes; None for always."""
        ...

    def codes(self) -> Sequence[DeviceCode]:
        """The kernels for GPUs that it launches."""
        ...

    def results(self) -> Sequence[Param]:
        """Its results, besides the tensors in the `results` of `build`."""
        ...

    def emit(self, call: Call) -> None:
        """Emit the call at the insertion point of `call.emitter`, and `call.give` its results.

        Raises TypeError, ValueError or CompileError if the call is not possible.
        """
        ...


class PlainStep:
    """A convention that launches no kernel for a GPU and has no results."""

    __slots__ = ()

    def codes(self) -> tuple[DeviceCode, ...]:
        """See `CallingConvention`."""
        return ()

    def results(self) -> tuple[Param, ...]:
        """See `CallingConvention`."""
        return ()


OPTIONAL: Final[Mapping[str, tuple[str, tuple[Any, ...]]]] = MappingProxyType(
    {
        "steps": ("calling conventions", ()),
        "choices": ("calling conventions", ()),
        "temporaries": ("Tensors", (Tensor,)),
        "objects": ("Tensors", (Tensor,)),
    }
)
"""What ferrule reads of a convention that has it: a list or tuple of these; any for `()`, since a
convention checks its own parts when it is made."""


def check_convention(convention: object, what: str) -> None:
    """Raise TypeError for an object that is not a calling convention; `what` is its name."""
    if isinstance(convention, type):
        raise TypeError(
            f"{what} must be a calling convention, but got the class {convention.__name__}: call it"
        )
    lacks = [name for name in ("when", "codes", "results", "emit") if not hasattr(convention, name)]
    if lacks:
        raise TypeError(
            f"{what} must be a calling convention, such as conventions.CudaLaunch(…), "
            f"but got {type(convention).__name__}, which lacks {', '.join(lacks)}"
        )
    for name, (what_of, classes) in OPTIONAL.items():
        found = getattr(convention, name, ())
        fits = isinstance(found, list | tuple)
        if not fits or (classes and not all(isinstance(each, classes) for each in found)):
            _refuse(convention, what, name, f"a tuple of {what_of}", found)
    stream = getattr(convention, "stream", None)
    if not isinstance(stream, (type(None), *get_args(Param))):
        _refuse(convention, what, "stream", "a parameter of the signature or None", stream)


def _refuse(convention: object, what: str, name: str, expected: str, found: object) -> None:
    raise TypeError(
        f"{what}: {name} of {type(convention).__name__} must be {expected}, but got "
        f"{type(found).__name__}: ferrule reads this name of a convention, so call another field "
        f"something else"
    )
