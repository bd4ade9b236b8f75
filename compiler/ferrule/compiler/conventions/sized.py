"""`Sized`: a number that a function returns is the size of results.

k = specs.sym_int64(symbol="k")
out = Tensor("out", (k,), "uint8", capacity=bound)
compress = CFunction("compress", [out.data, out.nbytes, …], returns="int64", code=code)
build(signature, Sized(compress, k), results=[out])
"""

from __future__ import annotations

from llvmlite import ir

from ferrule.compiler.artefacts import Fault, literal
from ferrule.compiler.conventions.arguments import shown
from ferrule.compiler.conventions.base import Call
from ferrule.compiler.conventions.protocol import CallingConvention, check_convention
from ferrule.compiler.conventions.steps import teller
from ferrule.compiler.cuda.code import DeviceCode
from ferrule.runtime.llvm.layouts import I64
from ferrule.specs import Condition, DType, Param, Scalar, Sym
from ferrule.specs.deferred import dataclass


@dataclass(frozen=True, slots=True, init=False)
class Sized:
    """Takes sizes from the results of a call.

        Sized(CFunction("ZSTD_compress", […], returns=code, code=zstd), k)
        Sized(CFunction("find", […], returns=["int64", "float32"], code=code), k, None)

    There is a symbol for each number that the call would give back: the number is the value of the
    symbol in all that follows, and nobody else gets it.  None lets the number come back as ever.
    Results with such a symbol as first size and a `capacity` are allocated before the call, with
    the capacity, and come back with this size; until the call is made, the symbol has the value of
    the capacity.  Another symbol can be the size of what later steps of a `Sequence` take.

    A number that is below 0 or above the capacity is a RuntimeError of the call.  Raises TypeError
    for what is no call or no symbol; ValueError for another number of symbols than numbers, for one
    that is no integer, and for a call that is made under a condition.
    """

    step: CallingConvention
    sizes: tuple[Sym | None, ...]

    def __init__(self, call: CallingConvention, *sizes: Sym | None) -> None:
        check_convention(call, "Sized: the call")
        object.__setattr__(self, "step", call)
        object.__setattr__(self, "sizes", sizes)
        for each in sizes:
            if not isinstance(each, Sym | None):
                raise TypeError(
                    f"Sized: a size is a symbol, specs.sym_int64(symbol='k'), or None, but got "
                    f"{shown(each)}"
                )
        if call.when is not None:
            raise ValueError("Sized: a call that may not be made cannot tell a size")
        given = call.results()
        if len(given) != len(sizes):
            raise ValueError(
                f"Sized: expected a symbol, or None, for each value that the call gives back, "
                f"{len(given)}, but got {len(sizes)}"
            )
        if all(each is None for each in sizes):
            raise ValueError("Sized: expected a symbol for at least one value, but all are None")
        for each, result in zip(sizes, given, strict=True):
            if each is not None and not _is_integer(result):
                raise ValueError(f"Sized: a size is an integer, but {shown(result)} is none")

    @property
    def steps(self) -> tuple[CallingConvention, ...]:
        """The call."""
        return (self.step,)

    @property
    def when(self) -> Condition | None:
        """See `CallingConvention`."""
        return None

    def codes(self) -> tuple[DeviceCode, ...]:
        """See `CallingConvention`."""
        return tuple(self.step.codes())

    def results(self) -> tuple[Param, ...]:
        """See `CallingConvention`."""
        pairs = zip(self.step.results(), self.sizes, strict=True)
        return tuple(result for result, size in pairs if size is None)

    def emit(self, call: Call) -> None:
        """See `CallingConvention`."""
        before = len(call.given_back)
        call.make(self.step)
        given = call.given_back[before:]
        del call.given_back[before:]
        name = teller(self.step)
        for leaves, result, size in zip(given, self.step.results(), self.sizes, strict=True):
            if size is None:
                call.given_back.append(leaves)
                continue
            assert isinstance(result, Scalar)
            call.tell(size, _wide(call, leaves()[0], result.dtype, name), name)


def _is_integer(result: Param) -> bool:
    return isinstance(result, Scalar) and result.dtype.kind in ("int", "uint")


def _wide(call: Call, value: ir.Value, dtype: DType, name: str) -> ir.Value:
    """An integer as i64; one that does not fit ends the call."""
    if dtype.bits < 64:
        return getattr(call.emitter.builder, "sext" if dtype.kind == "int" else "zext")(value, I64)
    if dtype.kind == "uint":
        beyond = call.emitter.icmp("slt", value, call.emitter.const_i64(0))
        message = f"{literal(name)} gave {{unsigned}}, which is no size"
        call.refuse(beyond, Fault("RuntimeError", message), [value])
    return value
