"""`build_program`: from a signature to the check program that `ferrule_check` runs for a call.

The order of the rows is the order of the errors: the number of arguments; kind, ndim, dtype and
device of each parameter from left to right; then the symbols are bound; sizes, strides, alignment
and values of each parameter from left to right; the requirements of the signature; the relations
that the body needs.

Rules of kinds that are decided here:

* an int constant accepts an int, or a bool that is equal to it;
* a non-null pointer refuses None, a null pointer and 0 with a ValueError, because they are values
  of the right type;
* an int of more than 64 bits is an int out of range, except for uint64;
* the elements of containers have no leaves.
"""

from __future__ import annotations

from collections.abc import Sequence

from ferrule.compiler.artefacts import Location, Relation
from ferrule.compiler.checker.code import Code
from ferrule.compiler.checker.format import Binary, Op
from ferrule.compiler.checker.kinds import check_kinds
from ferrule.compiler.checker.nodes import Node, leaf_count, nodes_of
from ferrule.compiler.checker.sizes import SizeRows
from ferrule.compiler.checker.values import ValueRows
from ferrule.compiler.messages import catalogue, parts
from ferrule.compiler.messages.parts import Part, Text, Unsigned, Value
from ferrule.compiler.messages.table import Table
from ferrule.specs import Requirement, Scalar, Sym, Uint64, ValueOf
from ferrule.specs.deferred import dataclass
from ferrule.specs.expr import INT64_MIN
from ferrule.specs.signature import Signature


@dataclass(frozen=True, slots=True)
class Program:
    """A check program, a constant of an object with an alignment of 8 bytes.

    `leaves` is the number of slots of `out` before the symbols of the signature, `ops` the
    operations of its rows.
    """

    data: bytes
    leaves: int
    ops: frozenset[Op]


def build_program(
    signature: Signature,
    relations: Sequence[Relation],
    table: Table,
    location: Location | None = None,
    shown: str | None = None,
    *,
    is_result: bool = False,
) -> Program:
    """The program of a signature; messages of relations go to `table`.

    `location` is the source of the function, for the traceback of an error; `shown` is the
    signature in its messages; `is_result` means that the program checks the result of a call.
    Raises ValueError if the device of a tensor is not decided.
    """
    code, nodes = Code(), nodes_of(signature)
    sizes = SizeRows(code, signature, nodes)
    values = ValueRows(code, sizes)
    _check_count(code, len(nodes))
    for node in nodes:
        check_kinds(code, node)
    sizes.bind()
    for node in nodes:
        values.check(node)
    for required in signature.requires:
        _check_requirement(sizes, values, nodes, required, shown or str(signature), location, table)
    for relation in relations:
        _check_relation(sizes, signature, relation, table)
    code.row(Op.END)
    leaves = sum(map(leaf_count, signature.params))
    data = code.data(
        signature=shown or str(signature),
        trace=catalogue.trace_of(location),
        leaves=leaves,
        symbols=len(signature.symbols),
        stack=sizes.stack,
        is_result=is_result,
    )
    return Program(data, leaves, code.ops)


def _check_count(code: Code, count: int) -> None:
    words = "1 parameter" if count == 1 else f"{count} parameters"
    code.row(Op.COUNT, a=code.text(words), b=count)


def _check_requirement(
    sizes: SizeRows,
    values: ValueRows,
    nodes: Sequence[Node],
    required: Requirement,
    shown: str,
    location: Location | None,
    table: Table,
) -> None:
    """The message shows the values of the symbols, which are on the stack above the condition's."""
    names, integers = sizes.signature.known, {}
    for symbol in required.symbols:
        if isinstance(symbol.key, ValueOf):
            integers[symbol] = next(n for n in nodes if n.param.name == symbol.key.param)

    def push(symbol: Sym, is_shown: bool) -> int:
        code, node = sizes.code, integers[symbol]
        assert isinstance(node.param, Scalar)
        code.at(node.at)
        values.check_scalar(node.param.dtype, 0)
        code.row(Op.PUSH_NUMBER)
        if node.param.dtype is not Uint64 or is_shown:
            return 1
        # There and back: what does not fit with a sign overflows, and so has no value.
        for operation in (Binary.ADD, Binary.SUB):
            code.row(Op.PUSH, b=INT64_MIN)
            code.row(Op.BINARY, kind=operation)
        return 2

    sizes.require(required.condition, push)
    actual: list[Part] = []
    for slot, symbol in enumerate(required.symbols):
        param = integers[symbol].param if symbol in integers else None
        unsigned = isinstance(param, Scalar) and param.dtype is Uint64
        value = Unsigned(slot + 1) if unsigned else Value(slot + 1)
        actual += [Text(f"{', ' if slot else ''}{names[symbol]} = "), value]
    filled: dict[str, catalogue.Filling] = {
        "signature": shown,
        "condition": required.text(names),
        "actual": tuple(actual),
        "hint": f": {required.message}" if required.message else "",
    }
    failed, undefined = (
        table.add(entry.fill(filled, location=location))
        for entry in (catalogue.REQUIRED, catalogue.REQUIRED_UNDEFINED)
    )
    sizes.code.row(Op.REQUIRED, a=failed, b=undefined)


def _check_relation(
    sizes: SizeRows, signature: Signature, relation: Relation, table: Table
) -> None:
    undefined = catalogue.RELATION_UNDEFINED.fill(
        location=relation.location,
        signature=parts.Signature(),
        what=relation.left_name,
        left=signature.format(relation.left),
        right=signature.format(relation.right),
    )
    different = catalogue.RELATION.fill(
        location=relation.location,
        signature=parts.Signature(),
        what=relation.left_name,
        owner=relation.right_name,
        expected=Value(0),
        actual=Value(1),
    )
    sizes.formula(relation.left, relation.right)
    sizes.code.row(Op.RELATION, a=table.add(different), b=table.add(undefined))
