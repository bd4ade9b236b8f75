"""In the process of MLIR: `gpu.subgroup_reduce` as shuffles, which upstream's passes lower.

Each step adds the value of the lane whose number differs in one bit, so that after the last one all
lanes of a cluster have the result.
"""

from __future__ import annotations

from typing import Any, Final

from ferrule.compiler.mlir.session import Session
from ferrule.frontends.mlir.reading import attribute, walk

_WARP: Final = 32
_WORD: Final = 32
_OF_FLOATS: Final = {
    **{name: f"arith.{name}" for name in ("minnumf", "maxnumf", "minimumf", "maximumf")},
    "add": "arith.addf",
    "mul": "arith.mulf",
}
_OF_INTEGERS: Final = {
    **{name: f"arith.{name}" for name in ("minsi", "minui", "maxsi", "maxui")},
    "add": "arith.addi",
    "mul": "arith.muli",
    "and": "arith.andi",
    "or": "arith.ori",
    "xor": "arith.xori",
}


def lower_reductions(session: Session, module: Any) -> None:
    """Replaces the reductions of numbers; those of vectors stay, and are refused by the passes."""
    for each in list(walk(module.operation)):
        if each.name == "gpu.subgroup_reduce":
            _lower(session, each)


def _lower(session: Session, operation: Any) -> None:
    ir, value = session.ir, operation.operands[0]
    is_float = isinstance(value.type, (ir.F16Type, ir.BF16Type, ir.F32Type, ir.F64Type))
    combines = (_OF_FLOATS if is_float else _OF_INTEGERS).get(_name(operation))
    if combines is None or not (is_float or isinstance(value.type, ir.IntegerType)):
        return
    size, stride = attribute(operation, "cluster_size"), attribute(operation, "cluster_stride")
    step = 1 if stride is None else int(stride.value)
    end = _WARP if size is None else int(size.value) * step
    with ir.InsertionPoint(operation), operation.location:
        made = _Words(ir)
        while step < end:
            value = made.op(combines, [value, made.shuffled(value, step)], value.type)
            step *= 2
    operation.results[0].replace_all_uses_with(value)
    operation.erase()


def _name(operation: Any) -> str:
    """The name of the operation that combines, of `#gpu<all_reduce_op add>`."""
    return str(operation.attributes["op"]).partition(" ")[2].rstrip(">")


class _Words:
    """Emits shuffles of values, word by word of 32 bits."""

    __slots__ = ("_ir",)

    def __init__(self, ir: Any) -> None:
        self._ir: Final = ir

    def op(self, name: str, operands: list[Any], result: Any) -> Any:
        return self._ir.Operation.create(name, [result], operands).results[0]

    def shuffled(self, value: Any, distance: int) -> Any:
        """The value of the lane whose number differs in this bit."""
        ir, kind = self._ir, value.type
        bits = kind.width
        whole = ir.IntegerType.get_signless(bits)
        word = ir.IntegerType.get_signless(_WORD)
        number = value if kind == whole else self.op("arith.bitcast", [value], whole)
        if bits > _WORD:
            shift = self._constant(_WORD, whole)
            high = self.op("arith.shrui", [number, shift], whole)
            low, high = (
                self.op(
                    "arith.extui",
                    [self._shuffle(self.op("arith.trunci", [part], word), distance)],
                    whole,
                )
                for part in (number, high)
            )
            found = self.op("arith.ori", [low, self.op("arith.shli", [high, shift], whole)], whole)
        elif bits == _WORD:
            found = self._shuffle(number, distance)
        else:
            wide = self._shuffle(self.op("arith.extui", [number], word), distance)
            found = self.op("arith.trunci", [wide], whole)
        return found if kind == whole else self.op("arith.bitcast", [found], kind)

    def _shuffle(self, word: Any, distance: int) -> Any:
        ir, kind = self._ir, word.type
        sizes = [self._constant(distance, kind), self._constant(_WARP, kind)]
        return ir.Operation.create(
            "gpu.shuffle",
            [kind, ir.IntegerType.get_signless(1)],
            [word, *sizes],
            attributes={"mode": ir.Attribute.parse("#gpu<shuffle_mode xor>")},
        ).results[0]

    def _constant(self, number: int, kind: Any) -> Any:
        ir = self._ir
        attributes = {"value": ir.IntegerAttr.get(kind, number)}
        return ir.Operation.create("arith.constant", [kind], attributes=attributes).results[0]
