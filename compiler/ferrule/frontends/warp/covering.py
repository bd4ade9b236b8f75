"""Whether arrays are as large as what is launched: `wp.launch` does not ask, and a kernel that
takes its indices from `wp.tid()` then reads and writes behind their ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ferrule.compiler.artefacts import Fault, literal
from ferrule.compiler.conventions.base import Call
from ferrule.compiler.cuda.code import DeviceCode
from ferrule.specs import Condition, Dim, Param, Tensor


@dataclass(frozen=True, slots=True)
class Covering:
    """Ends a call, with a ValueError, in which an array is smaller than `dims`; calls nothing."""

    arrays: tuple[tuple[str, Tensor], ...]
    """With the paths that lead to them: "x", or in a struct "options.weights"."""
    dims: tuple[Dim, ...]
    when: Condition | None = None

    def codes(self) -> tuple[DeviceCode, ...]:
        """See `CallingConvention`."""
        return ()

    def results(self) -> tuple[Param, ...]:
        """See `CallingConvention`."""
        return ()

    def emit(self, call: Call) -> None:
        """See `CallingConvention`."""
        for path, array in self.arrays:
            for axis, size, dim in _open(array, self.dims):
                self._check(call, path, axis, size, dim)

    def _check(self, call: Call, path: str, axis: int, size: Dim, dim: Dim) -> None:
        what = f"{path}.shape[{axis}]"
        wanted, got = call.size(dim, f"dim {axis}"), call.size(size, what)
        message = (
            f"Mismatched {literal(what)}, expected at least {{}}, the size {axis} of what is "
            f"launched, but got {{}}: name the array in smaller= if the kernel does not index it so"
        )
        short = call.emitter.icmp("slt", got, wanted)
        call.refuse(short, Fault("ValueError", message), [wanted, got])
        call.assume(f"{what} is at least size {axis} of the launch")


def _open(array: Tensor, dims: Sequence[Dim]) -> Iterator[tuple[int, Dim, Dim]]:
    """The axes along which an array is not known to be as large as what is launched."""
    for axis, (size, dim) in enumerate(zip(array.shape, dims, strict=False)):
        known = isinstance(size, int) and isinstance(dim, int) and size >= dim
        if not known and size != dim:
            yield axis, size, dim
