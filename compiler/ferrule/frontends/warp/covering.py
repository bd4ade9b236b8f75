"""Whether arrays are as large as a kernel indexes them: Warp does not ask, and a kernel then reads
and writes behind their ends.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ferrule.compiler.artefacts import Fault, literal
from ferrule.compiler.conventions.base import Call
from ferrule.compiler.cuda.code import DeviceCode
from ferrule.specs import Condition, Dim, Param, Tensor


@dataclass(frozen=True, slots=True)
class Need:
    """What an axis of an array needs: `size` elements, which `why` says; `path` leads to the array,
    "x", or in a struct "options.weights"."""

    path: str
    array: Tensor
    axis: int
    size: Dim
    why: str

    @property
    def is_open(self) -> bool:
        """Whether the array is not known to have them."""
        actual = self.array.shape[self.axis]
        known = isinstance(actual, int) and isinstance(self.size, int) and actual >= self.size
        return not known and actual != self.size


@dataclass(frozen=True, slots=True)
class Covering:
    """Ends a call, with a ValueError, in which an array has less than a kernel needs of it; calls
    nothing.  `unknown` are the arrays that a kernel indexes by what cannot be told."""

    needs: tuple[Need, ...]
    dims: tuple[Dim, ...]
    """What is launched: nothing is needed where one of them is 0."""
    unknown: tuple[str, ...] = ()
    when: Condition | None = None

    def codes(self) -> tuple[DeviceCode, ...]:
        """See `CallingConvention`."""
        return ()

    def results(self) -> tuple[Param, ...]:
        """See `CallingConvention`."""
        return ()

    def emit(self, call: Call) -> None:
        """See `CallingConvention`."""
        for need in self.needs:
            if need.is_open:
                self._check(call, need)
        for path in self.unknown:
            call.assume(f"{path} is indexed inside of its sizes alone")

    def _check(self, call: Call, need: Need) -> None:
        actual = need.array.shape[need.axis]
        what = f"{need.path}.shape[{need.axis}]"
        wanted, got = call.size(need.size, need.why), call.size(actual, what)
        message = (
            f"Mismatched {literal(what)}, expected at least {{}}, {need.why}, but got {{}}: name "
            "the array in smaller= if the kernel does not index it so"
        )
        short = call.emitter.icmp("slt", got, wanted)
        for axis, dim in enumerate(self.dims):
            if not isinstance(dim, int) and dim != need.size:
                size = call.size(dim, f"dim {axis}")
                runs = call.emitter.icmp("ne", size, call.emitter.const_i64(0))
                short = call.emitter.binary("and", short, runs)
        call.refuse(short, Fault("ValueError", message), [wanted, got])
        call.assume(f"{what} is at least {need.why if need.size in self.dims else need.size}")


def needed(found: Iterable[Need]) -> tuple[Need, ...]:
    """Each need once."""
    return tuple({(each.path, each.axis, each.size): each for each in found}.values())
