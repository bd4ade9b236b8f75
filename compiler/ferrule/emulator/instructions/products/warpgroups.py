"""wgmma: asynchronous products of matrices in shared memory by four warps.

Sums are those of `tensor_cores`: exact products, added one after the other in the order of k and
rounded to float32 each time. A product is done when a thread waits for its group, not before (with
random schedules, at times when the next is issued): until then shared memory may change what it
reads. An instruction that uses its registers before waits for it first, as ptxas makes it.
"""

from __future__ import annotations

from typing import Final

from ferrule.emulator.instructions.copies.threads import pending
from ferrule.emulator.instructions.forms import Named, form, kind
from ferrule.emulator.instructions.helpers import helper
from ferrule.emulator.native.language import functions, helper_text
from ferrule.emulator.native.products import CONSTANTS, KINDS, QUEUE, SOURCE
from ferrule.emulator.ptx.module import Group, Immediate, Instruction, Operand, Register
from ferrule.emulator.warps.emitter import Emitter, items_of, splat
from ferrule.specs.deferred import dataclass

_START: Final = r"\.mma_async\.sync\.aligned\.m64n(?P<n>\d+)k(?P<k>{})"
_FLOATS: Final = (
    ("16", r"\.(?P<d>f16|f32)\.(?P<a>f16)\.(?P<b>f16)"),
    ("16", r"\.(?P<d>f32)\.(?P<a>bf16)\.(?P<b>bf16)"),
    ("8", r"\.(?P<d>f32)\.(?P<a>tf32)\.(?P<b>tf32)"),
    ("32", r"\.(?P<d>f16|f32)\.(?P<a>e4m3|e5m2)\.(?P<b>e4m3|e5m2)"),
)
_INTEGERS: Final = (
    ("32", r"(?P<sat>\.satfinite)?\.(?P<d>s32)\.(?P<a>[su]8)\.(?P<b>[su]8)"),
    ("256", r"\.(?P<d>s32)\.(?P<a>b1)\.(?P<b>b1)\.and\.popc"),
)
_EACH: Final = {"f16": 2, "bf16": 2, "tf32": 1, "e4m3": 4, "e5m2": 4, "s8": 4, "u8": 4, "b1": 1}


def _product(e: Emitter, item: Instruction, named: Named) -> None:
    a, b, d = (kind(named, each) for each in "abd")
    columns = _columns(e, named, d)
    result, left, right, keeps, *more = item.operands
    in_registers = isinstance(left, Group)
    count = columns // 2 // (2 if d == "f16" else 1)
    results, factors = items_of(result), items_of(left) if in_registers else ()
    if len(results) != count or (in_registers and len(factors) != 4):
        raise e.refuse(f"the result has {len(results)} registers, not {count}")
    settings = _settings(e, more, a, d, in_registers)
    name = ":".join(
        ["wgmma", str(columns), a, b, d, *settings, (named.get("sat") or ".").strip(".")]
    )
    e.helpers.add(name)
    slots = e.table([_slot(e, each) for each in (*results, *factors)])
    given = [
        ("<32 x i64>", e.spread(f'ptrtoint (ptr @"{name}" to i64)', "i64")),
        ("<32 x i64>", e.spread(f"ptrtoint (ptr {slots} to i64)", "i64")),
        ("<32 x i64>", splat("i64", "0") if in_registers else e.read(left, "b64")),
        ("<32 x i64>", e.read(right, "b64")),
        ("<32 x i32>", _keeps(e, keeps)),
    ]
    e.call_many("wgmma.queue:issue:0", given, [])


for _depth, _types in _FLOATS:
    form("wgmma", _START.format(_depth) + _types, 4, 6, 7, 8)(_product)
for _depth, _types in _INTEGERS:
    form("wgmma", _START.format(_depth) + _types, 4)(_product)


def _columns(e: Emitter, named: Named, d: str) -> int:
    columns = int(kind(named, "n"))
    if columns % 8 or not 8 <= columns <= 256 or (d == "s32" and columns > 24 and columns % 16):
        raise e.refuse(f"there is no shape of {columns} columns")
    return columns


def _keeps(e: Emitter, operand: Operand) -> str:
    """Whether the product is added to what is there."""
    if isinstance(operand, Immediate):
        return splat("i32", str(int(operand.value != 0)))
    return e.op(f"zext <32 x i1> {e.read(operand, 'pred')} to <32 x i32>")


def _settings(e: Emitter, more: list[Operand], a: str, d: str, in_registers: bool) -> list[str]:
    """Signs of A and B, then which of them are transposed."""
    numbers = [each.value for each in more if isinstance(each, Immediate)]
    turns = (1 if in_registers else 2) if a in ("f16", "bf16") else 0
    wanted = 0 if d == "s32" else 2 + turns
    if len(numbers) != len(more) or len(more) != wanted:
        raise e.refuse(f"it has {len(e.item.operands)} operands")
    signs, trans = numbers[:2], numbers[2:]
    if any(each not in (-1, 1) for each in signs) or any(each not in (0, 1) for each in trans):
        raise e.refuse("signs are -1 or 1, and transpositions 0 or 1")
    minus = [int(each < 0) for each in signs] or [0, 0]
    if in_registers:
        trans = [0, *trans]
    return [str(each) for each in (int(in_registers), *minus, *(trans or [0, 0])[:2])] + (
        ["0"] if in_registers and not turns else []
    )


def _slot(e: Emitter, operand: Operand) -> int:
    """Where a register lies in the frame."""
    if not isinstance(operand, Register) or e.kind_of(operand.name) not in _WORDS:
        raise e.refuse("matrices are in registers of 32 bits")
    return e.names.slots[operand.name]


_WORDS: Final = ("b32", "u32", "s32", "f32", "f16x2", "bf16x2")


@dataclass(frozen=True, slots=True)
class Shape:
    """What a product reads of shared memory: columns of B, numbers in a row of A, whether A is in
    registers instead, and which of A and B are transposed."""

    columns: int
    depth: int
    in_registers: bool
    transposed: tuple[int, int]


def shape_of(item: Instruction) -> Shape:
    """The shape of a product that was written without an error."""
    columns, a = item.modifiers[3].partition("k")[0][4:], item.modifiers[-1]
    if a == "popc":
        a = "b1"
    in_registers = isinstance(item.operands[1], Group)
    turns = [each.value for each in item.operands[6:] if isinstance(each, Immediate)]
    first, second = ([0] * in_registers + turns + [0, 0])[:2]
    return Shape(int(columns), 8 * _EACH[a], in_registers, (first, second))


@helper("wgmma")
def _wgmma(
    name: str, columns: str, a: str, b: str, d: str, in_registers: str, minus_a: str, minus_b: str,
    trans_a: str, trans_b: str, *more: str,
) -> str:  # fmt: skip
    """`wgmma:128:f16:f16:f32:...`: types, whether A is in registers, signs, transpositions."""
    each = _EACH[a]
    constants = CONSTANTS | {
        "COLUMNS": int(columns),
        "DEPTH": 8 * each,
        "EACH": each,
        "A_KIND": KINDS.get(a.upper(), 0),
        "B_KIND": KINDS.get(b.upper(), 0),
        "A_REGISTERS": int(in_registers),
        "MINUS_A": int(minus_a),
        "MINUS_B": int(minus_b),
        "TRANS_A": int(trans_a),
        "TRANS_B": int(trans_b),
        "D_COUNT": int(columns) // 2 // (2 if d == "f16" else 1),
        "HALF": int(d == "f16"),
        "WHOLE": int(d == "s32"),
        "BITS": int(a == "b1"),
        "SATURATES": int("satfinite" in more),
    }
    return helper_text(name, SOURCE, "product", 1, constants)


@helper("wgmma.queue")
def _queue(name: str, entry: str, waits: str) -> str:
    """`wgmma.queue:wait:1`: issue, commit, or wait for all groups but so many."""
    pointers = len(functions(QUEUE)[entry].args.args) - 2
    return helper_text(name, QUEUE, entry, pointers, CONSTANTS | {"PENDING": int(waits)})


@form("wgmma", r"\.fence\.sync\.aligned", 0)
def _fence(e: Emitter, item: Instruction, named: Named) -> None:
    """Registers and shared memory are read when a product is done."""


@form("wgmma", r"\.commit_group\.sync\.aligned", 0)
def _commit(e: Emitter, item: Instruction, named: Named) -> None:
    e.call("wgmma.queue:commit:0", [], [])


@form("wgmma", r"\.wait_group\.sync\.aligned", 1)
def _wait(e: Emitter, item: Instruction, named: Named) -> None:
    e.call(f"wgmma.queue:wait:{pending(e, item)}", [], [])
