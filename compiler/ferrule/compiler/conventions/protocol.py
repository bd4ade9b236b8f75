"""What a calling convention is, and whether something is one."""

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
        """Whether to call at all, as the sizes of a call decide; None for always."""
        ...

    def codes(self) -> Sequence[DeviceCode]:
        """The kernels for GPUs that it launches."""
        ...

    def results(self) -> Sequence[Param]:
        """What it gives back besides the tensors that the caller of `build` names."""
        ...

    def emit(self, call: Call) -> None:
        """Write the call at the insertion point of `call.emitter`, and `call.give` its results.

        Raises TypeError, ValueError or CompileError for what cannot be called so.
        """
        ...


def check_convention(convention: object, what: str) -> None:
    """Raises TypeError for what is no calling convention; `what` names it."""
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
