"""The first part of a program: checks kind, ndim, dtype and device of each parameter, left to
right.

After it every value has an accepted type, so that the second part can read it.  Leaves that need no
further check are stored here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from typing_extensions import assert_never

from ferrule.compiler.checker.code import Code, mask_of
from ferrule.compiler.checker.format import Op
from ferrule.compiler.checker.nodes import JUST_NONE, Node, leaf_count
from ferrule.compiler.messages.names import PACKED_DTYPE
from ferrule.specs import ALSO_TAKEN, BY_DLPACK, DEVICE_CODES, HOST_DEVICES, Int8, Uint8
from ferrule.specs.params import (
    PACKED_NAME,
    AnyValue,
    Constant,
    Dict,
    Elements,
    EnvStream,
    Object,
    Optional,
    Pairs,
    Param,
    Payload,
    Pointer,
    Scalar,
    Shape,
    Tensor,
    Tuple,
    Union,
    WithTraits,
    type_indices,
)
from ferrule.specs.typeindex import BIG_INT


def words_of(param: Param) -> tuple[str, ...]:
    """The words of messages for the values that a parameter accepts."""
    match param:
        case Scalar(dtype=dtype):
            return ("int" if dtype.is_integer else dtype.kind,)
        case Pointer(nullable=False):
            return ("a pointer", "int")
        case Optional(item=item):
            return (*words_of(item), "None")
        case Union(members=members):
            return tuple(dict.fromkeys(word for each in members for word in words_of(each)))
        case Constant(value=value):
            return (type(value).__name__,)
        case Object(type_key=type_key):
            return (type_key,)
        case Tensor(owning=True):
            return ("a tensor object that can be kept, not a DLTensor* (view)",)
        case Tensor():
            return ("Tensor",)
        case Shape():
            return ("Shape", "tuple or list")
        case Tuple():
            return ("tuple or list",)
        case EnvStream():
            return ()
        case WithTraits():
            return param.traits.expected
        case _:
            assert_never(param)


def check_kinds(code: Code, node: Node, also: tuple[str, ...] = ()) -> None:
    """Rows that check the kind of a value; `also` are words for other values that are valid
    there."""
    expected = code.text(" or ".join((*words_of(node.param), *also)))
    code.at(node.at)
    match node.param:
        case Tensor():
            _check_type(code, node, expected)
            _check_tensor(code, node.param, node, expected)
        case Scalar() | Constant():
            _check_type(code, node, expected)
        case Shape(dims=dims):
            _check_type(code, node, expected)
            code.row(Op.SHAPE, a=expected, b=len(dims))
        case Tuple(items=items):
            _check_type(code, node, expected)
            code.row(Op.SEQUENCE, a=expected, b=len(items))
            for child in node.children:
                check_kinds(code, child)
        case Optional():
            _check_optional(code, node, also)
        case Union():
            _check_union(code, node, expected)
        case Object(type_key=type_key):
            code.row(Op.OBJECT, a=expected, b=code.text(type_key))
            _store_handle(code, node, Op.PAYLOAD)
        case EnvStream():
            raise ValueError("an env stream is no argument")
        case WithTraits(traits=traits):
            _check_plain(code, node, traits.payload, expected)
        case _:
            assert_never(node.param)


def _check_plain(code: Code, node: Node, payload: Payload, expected: int) -> None:
    """Check a kind that its traits describe completely."""
    match payload:
        case Payload.NOTHING | Payload.BITS:
            _check_type(code, node, expected)
        case Payload.ADDRESS:
            code.row(Op.TYPE, a=expected, **mask_of({0, 1, 4, BIG_INT}).operands())
        case Payload.BYTES:
            _check_type(code, node, expected)
            inside = node.leaf < 0
            code.row(Op.TEXT, kind=int(inside), axis=max(node.leaf, 0), a=expected)
        case Payload.OBJECT:
            _check_type(code, node, expected)
            _store_handle(code, node, Op.PAYLOAD)
            over_elements(code, node, check_kinds)
        case Payload.ANY:
            _store_handle(code, node, Op.ANY)
        case _:
            assert_never(payload)


def _check_type(code: Code, node: Node, expected: int) -> None:
    code.row(Op.TYPE, a=expected, **mask_of(type_indices(node.param)).operands())


def _store_handle(code: Code, node: Node, op: Op) -> None:
    if node.leaf >= 0:
        code.row(op)
        code.row(Op.STORE, a=node.leaf)


def _check_tensor(code: Code, spec: Tensor, node: Node, expected: int) -> None:
    if spec.device is None:
        raise ValueError(f"the device type of the parameter {spec.name} is not decided")
    code.row(Op.DLTENSOR, a=expected)
    code.row(Op.NDIM, b=len(spec.shape))
    dtype = PACKED_DTYPE if spec.packed else spec.dtype.dlpack
    name = PACKED_NAME if spec.packed else BY_DLPACK[dtype].name
    loose = spec.dtype in (Int8, Uint8) and not spec.exact
    code.row(Op.DTYPE, kind=int(loose), a=code.text(spec.expected or name), b=dtype)
    code.row(Op.DEVICE, a=code.text(spec.device), b=_devices(spec.device))
    if spec.device_id is not None:
        code.row(Op.DEVICE_ID, b=spec.device_id)
    if spec.device not in HOST_DEVICES:
        code.row(Op.SAME_DEVICE, a=code.text(f"{node.at.first}.device.index"))


def _devices(device: str) -> int:
    """The device types that a parameter takes, a bit for each."""
    taken = (device, *ALSO_TAKEN.get(device, ()))
    return sum(1 << DEVICE_CODES[each] for each in taken)


def _check_optional(code: Code, node: Node, also: tuple[str, ...]) -> None:
    present = code.row(Op.UNLESS, **JUST_NONE.operands())
    if node.leaf >= 0:
        code.row(Op.CLEAR, a=node.leaf, b=leaf_count(node.param))
    absent = code.row(Op.JUMP)
    code.here(present)
    if node.leaf >= 0:
        code.row(Op.FIELD, a=node.leaf, b=1)
    check_kinds(code, node.children[0], (*also, "None"))
    code.here(absent)


def _check_union(code: Code, node: Node, expected: int) -> None:
    _check_type(code, node, expected)
    if node.leaf >= 0:
        code.row(Op.CLEAR, a=node.leaf, b=leaf_count(node.param))
    done = []
    for position, child in enumerate(node.children):
        code.at(node.at)
        other = code.row(Op.UNLESS, **child.guards[-1][1].operands())
        if node.leaf >= 0:
            code.row(Op.FIELD, a=node.leaf, b=position)
        check_kinds(code, child)
        done.append(code.row(Op.JUMP))
        code.here(other)
    code.here(*done)


# ---- loops over the elements of a container ----


Visit: TypeAlias = "Callable[[Code, Node], None]"


def over_elements(code: Code, node: Node, visit: Visit) -> None:
    """Run the rows that `visit` adds for each element; no loop if it adds none."""
    children = [child for child in node.children if not isinstance(child.param, AnyValue)]
    match node.param:
        case Elements() if children:
            _over_sequence(code, node, children[0], visit)
        case Pairs() if children:
            _over_pairs(code, node, children, visit)


def _over_sequence(code: Code, node: Node, child: Node, visit: Visit) -> None:
    level = node.loops
    code.row(Op.RESET, kind=level)
    head = code.head()
    code.at(node.at)
    end = code.row(Op.EACH, kind=level)
    visit(code, child)
    code.row(Op.NEXT, kind=level, a=head)
    code.here(end)


def _over_pairs(code: Code, node: Node, children: list[Node], visit: Visit) -> None:
    level = node.loops
    code.at(node.at)
    code.row(Op.PAIRS, kind=level, axis=int(isinstance(node.param, Dict)))
    head = code.head()
    code.at(node.at)
    end = code.row(Op.PAIR, kind=level)
    for child in children:
        visit(code, child)
    code.row(Op.NEXT, kind=level, a=head)
    code.here(end)
