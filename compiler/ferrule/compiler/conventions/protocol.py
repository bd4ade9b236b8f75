"""The protocol of calling conventions, and its check."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from ferrule.compiler.cuda.code import DeviceCode
from ferrule.specs import Condition, Param

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
