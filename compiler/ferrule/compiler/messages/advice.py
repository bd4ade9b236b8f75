"""An example and a fix for each entry of the catalogue, for the page of errors.

`ADVICE` has exactly the codes of the catalogue.  It is separate from the catalogue so that building
a wrapper does not load data that only the documentation needs.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from ferrule.specs.deferred import dataclass

_ADD_ONE: Final = "add_one(a: Tensor([n0], float32), b: Tensor([n0], float32))"
_MATRIX: Final = "scale(a: Tensor([n0, 8], float32))"
_SIZES: Final = "reshape(s: Shape([n0, 4]), a: Tensor([n0], float32))"
_RECORD: Final = "blend(c: Tuple[float32, Literal[3]])"
_POINTER: Final = "fill(p: Pointer(float32))"


@dataclass(frozen=True, slots=True)
class Advice:
    """The text of the page of errors about one entry.

    `example` fills the fields of the entry's template; `fix` is the remedy, in Markdown.
    """

    example: Mapping[str, str]
    fix: str


def _advice(
    fix: str, signature: str = _ADD_ONE, argument: str = "argument #0", **own: str
) -> Advice:
    fields = {"signature": signature, "argument": argument, "hint": "", **own}
    return Advice(MappingProxyType(fields), fix)


ADVICE: Final[Mapping[str, Advice]] = MappingProxyType(
    {
        "CALL01": _advice(
            "Give one value for each parameter of the signature. From C, those with a default "
            "too; an env stream never.",
            count="2 parameters",
            actual="1",
        ),
        "CALL02": _advice(
            "Give what the signature says at this place. Nothing is converted: a list is no "
            "tensor, a string is no number, a tensor with one element is no number.",
            argument="argument #1",
            expected="Tensor",
            actual="int",
        ),
        "CALL03": _advice(
            "Load the library, or import the package, that registers the type before the call.",
            "train(s: Object(my.State))",
            expected="my.State",
            actual="None",
        ),
        "CALL04": _advice(
            "Give ints. A bool is no size.",
            _SIZES,
            what="s[1]",
            expected="int",
            actual="bool",
        ),
        "CALL05": _advice(
            "Give as many items as the example had. Where the number varies, take an `Array`.",
            "blend(t: Tuple[Tensor([n0], float32), float32, int32])",
            expected="3",
            actual="2",
        ),
        "CALL06": _advice(
            "Give as many sizes as the example had.", _SIZES, expected="2", actual="3"
        ),
        "CALL11": _advice(
            "Reshape the tensor, or compile with an example of this rank.", expected="1", actual="2"
        ),
        "CALL12": _advice(
            "Convert the tensor, or compile with an example of this dtype. NumPy makes float64 "
            "where it is not told otherwise.",
            expected="float32",
            actual="float64",
        ),
        "CALL13": _advice(
            "Move the tensor, or compile for its device.", expected="cpu", actual="cuda:0"
        ),
        "CALL14": _advice(
            "Move the tensor, or leave `device_id` out of the spec.", expected="0", actual="1"
        ),
        "CALL15": _advice(
            "Move the tensors to one device: a call runs on one.",
            argument="argument #1",
            owner="a.device.index",
            expected="0",
            actual="1",
        ),
        "CALL21": _advice(
            "If the size varies, put `sym_int()` in the example. If it is a stride, the tensor has "
            "another layout than the example: `make_fake_compact_tensor` is column-major unless "
            "`stride_order` says otherwise, `row_major` is the other order, and rows with gaps "
            "need `make_fake_tensor`.",
            _MATRIX,
            what="a.strides[0]",
            expected="1",
            actual="8",
            hint="; hint: the parameter is column-major and this tensor looks row-major, which an "
            "example with stride_order=(1, 0) stands for",
        ),
        "CALL22": _advice(
            "Make the two equal, or give each place a `sym_int()` of its own.",
            argument="argument #1",
            what="b.shape[0]",
            owner="a.shape[0]",
            expected="128",
            actual="126",
        ),
        "CALL23": _advice(
            "Make the size what the expression says, for the value that its symbols have in this "
            "call.",
            "pad(a: Tensor([n0], float32), b: Tensor([n0 * 2 + 1], float32))",
            "argument #1",
            what="b.shape[0]",
            formula="n0 * 2 + 1",
            expected="33",
            actual="32",
        ),
        "CALL24": _advice(
            "No size can be right here: change the sizes that the expression is computed from.",
            "split(a: Tensor([n0], float32), b: Tensor([n1], float32), "
            "c: Tensor([n0 // n1], float32))",
            "argument #2",
            what="c.shape[0]",
            formula="n0 // n1",
            actual="4",
        ),
        "CALL25": _advice(
            "Pad the tensor, or compile without this `divisibility`.",
            what="a.shape[0]",
            expected="16",
            actual="126",
        ),
        "CALL26": _advice(
            "Give a value in the range. For sizes past 2**31, say `sym_int(width=64)`.",
            "scale(a: Tensor([n0], float32), k: uint8)",
            "argument #1",
            what="value",
            range="uint8",
            low="0",
            high="255",
            actual="256",
        ),
        "CALL27": _advice(
            "Give a bool: `bool(x)`.",
            "scale(a: Tensor([n0], float32), flag: bool)",
            "argument #1",
            actual="2",
        ),
        "CALL28": _advice(
            "Give the value that the function was compiled for, or compile for this one.",
            _RECORD,
            "c[1] in argument #0",
            expected="3",
            actual="4",
        ),
        "CALL29": _advice(
            "Give a name such as `float32` or `cuda:0`, or the dtype or device itself.",
            "cast(to: dtype)",
            expected="dtype",
            actual="'float23'",
        ),
        "CALL31": _advice(
            "A slice begins in the middle of what `assumed_align` promised: copy it, or compile "
            "with the alignment that slices have.",
            expected="16",
            actual="0x7f52c4a01004",
        ),
        "CALL32": _advice("Whoever made the tensor gave it no memory: allocate it."),
        "CALL33": _advice("The tensor was not filled in: set `shape` to its sizes."),
        "CALL34": _advice(
            "Give an address that is a multiple, or compile with another `assumed_align`.",
            _POINTER,
            expected="16",
            actual="0x1008",
        ),
        "CALL35": _advice(
            "Give an address. Where none is a case of its own, say `nullable=True`.", _POINTER
        ),
        "CALL41": _advice(
            "The function combines the two element by element, so their sizes must be equal. "
            "Where they always are, one symbol for both in the examples says so.",
            "add(a: Tensor([n0], float32), b: Tensor([n1], float32))",
            what="b.shape[0]",
            owner="a.shape[0]",
            expected="128",
            actual="126",
        ),
        "CALL42": _advice(
            "No sizes can be right here: change those that the expressions are computed from.",
            "add(a: Tensor([n0], float32), b: Tensor([n1], float32))",
            what="b.shape[0]",
            left="n0 // n1",
            right="n0",
        ),
        "CALL51": _advice(
            "Call with at most so many, or compile with another `max` of `sym_int`; with an "
            "overload, add a candidate for larger sizes.",
            "norm(a: Tensor([n: 1..4096], float32))",
            what="a.shape[0]",
            expected="4096",
            actual="8192",
        ),
        "CALL52": _advice(
            "Call with at least so many, or compile with another `min` of `sym_int`.",
            "norm(a: Tensor([n: 1..4096], float32))",
            what="a.shape[0]",
            expected="1",
            actual="0",
        ),
        "CALL53": _advice(
            "Give sizes and numbers that keep the relation; `signature.text()` has all of them.",
            "gather(a: Tensor([m], float32), k: int32)",
            condition="m * k <= 1048576",
            actual="m = 4096, k = 1024",
            hint=": the scratch has a MiB",
        ),
        "CALL54": _advice(
            "Give sizes and numbers for which each part of the relation has a value of 64 bits.",
            "gather(a: Tensor([m], float32), k: int32)",
            condition="m // k <= 1024",
            actual="m = 4096, k = 0",
            hint="",
        ),
    }
)
