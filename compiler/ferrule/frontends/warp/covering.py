"""Checks that arrays are large enough for a kernel's indices: Warp does not check this, and a
kernel then reads and writes out of bounds."""

from __future__ import annotations

from collections.abc import Iterable

from ferrule.compiler.artefacts import Fault, literal
from ferrule.compiler.conventions.base import Call
from ferrule.compiler.conventions.protocol import PlainStep
from ferrule.specs import Condition, Dim, Tensor
from ferrule.specs.deferred import dataclass


@dataclass(frozen=True, slots=True)
class Need:
    """The required size of an axis of an array: `size` elements, for the reason `why`; `path` names
    the array, "x", or in a struct "options.weights"."""

    path: str
    array: Tensor
    axis: int
    size: Dim
    why: str

    @property
    def is_open(self) -> bool:
        """Whether it is not known at compile time that the array is large enough."""
        actual = self.array.shape[self.axis]
        known = isinstance(actual, int) and isinstance(self.size, int) and actual >= self.size
        return not known and actual != self.size


@dataclass(frozen=True, slots=True)
class Covering(PlainStep):
    """Ends a call with a ValueError if an array is smaller than a kernel needs; it calls no code.
    `unknown` are the arrays that a kernel indexes by values that are not known, `remarks` are for
    the builder of the function."""

    needs: tuple[Need, ...]
    dims: tuple[Dim, ...]
    """The sizes of the launch: nothing is required if one of them is 0."""
    unknown: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    when: Condition | None = None

    def emit(self, call: Call) -> None:
        """See `CallingConvention`."""
        call.say("check that the arrays are as large as the kernel needs them")
        for need in self.needs:
            if need.is_open:
                self._check(call, need)
        for path in self.unknown:
            call.assume(f"{path} is indexed inside of its sizes alone")
        for text in self.remarks:
            call.remark(text)

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
    """The needs without duplicates."""
    return tuple({(each.path, each.axis, each.size): each for each in found}.values())
