"""Selects PTX for a module with LLVM's back end, and works around two bugs in that back end.

**Shifts.**  The counts of PTX's shifts are 32 bits wide, and a count that is at least the width of
the operand shifts every bit out.  So LLVM's NVPTX (seen in 22.1) makes one `shl.b64` of this, and
drops the comparison:

    define i64 @shifted(i64 %x, i64 %n) {
      %inside = icmp ult i64 %n, 64
      %shifted = shl i64 %x, %n
      %result = select i1 %inside, i64 %shifted, i64 0
      ret i64 %result
    }

but it cuts %n to 32 bits for the instruction: 7 shifted by 2**32 + 1 is 14 and not 0.  It does the
same with `lshr`, and with 32-bit shifts whose count is the `trunc` of the compared value.

No other form of the shift is safe: if a count is known to be below the width, because the program
compares it, LLVM's passes remove a `umin` or an `and`, and may turn the branch into a select
afterwards.  So these counts are masked after all passes: the mask does not change a count that is
in range, and other counts are poison already.  The back end cannot remove the mask, because it does
not know that the count was compared.

**Truth values as bfloat16.**  `sitofp i1 %c to bfloat` is -1.0 where %c is true.  From sm_90 on
NVPTX (seen in 22.1) makes 1.0 of it: it widens %c without its sign.  LLVM's passes write this for
every negated truth value that becomes a bfloat16, `BFloat16(-(x < y))`, through other floats too.
So after all passes it is a select.  Other floats and other integers are right.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from llvmlite import binding as llvm

_NAME: Final = r'%(?:"[^"]*"|[-\w.$]+)'
_TYPE: Final = r"(?:<\d+ x )?i(\d+)>?"
_SHIFT: Final = re.compile(
    rf"^(  {_NAME} = (?:shl|lshr) (?:nuw |nsw |exact )*({_TYPE}) .+, )({_NAME})(,.*)?$",
    re.MULTILINE,
)
_TRUNC: Final = re.compile(rf"^  ({_NAME}) = trunc ", re.MULTILINE)
_SIGNED_TRUTH: Final = re.compile(
    rf"^(  {_NAME} = )sitofp ((?:<\d+ x )?i1>?) ({_NAME}) to ((?:<\d+ x )?bfloat>?)", re.MULTILINE
)
_MINUS_ONE: Final = "0xRBF80"
_COUNT: Final = "%ferrule.count."
_WIDTH: Final = 32
"""The bits of a shift's count in PTX."""


def select_ptx(module: Any, machine: Any, context: Any) -> str:
    """The PTX of a module after all passes; the code may be emitted from a changed copy of it."""
    text = str(module)
    safe = with_selected_bfloats(with_masked_counts(text))
    if safe == text:
        return str(machine.emit_assembly(module))
    with llvm.parse_assembly(safe, context) as changed:
        changed.verify()
        return str(machine.emit_assembly(changed))


def with_masked_counts(text: str) -> str:
    """LLVM IR with masked counts for the shifts whose counts the back end may truncate.

    Results that were defined before are unchanged.
    """
    cut = set(_TRUNC.findall(text))
    pieces, end = list[str](), 0
    for number, found in enumerate(_SHIFT.finditer(text)):
        head, type_, bits, count, rest = found.groups()
        if int(bits) > _WIDTH or count in cut:
            pieces += (text[end : found.start()], *_masked(number, head, type_, bits, count, rest))
            end = found.end()
    return "".join((*pieces, text[end:]))


def _masked(
    number: int, head: str, type_: str, bits: str, count: str, rest: str | None
) -> Iterator[str]:
    # The mask is a power of two minus one: for an odd width some larger counts pass, which are
    # poison.
    mask = (1 << (int(bits) - 1).bit_length()) - 1
    constant = f"splat (i{bits} {mask})" if type_.startswith("<") else str(mask)
    yield f"  {_COUNT}{number} = and {type_} {count}, {constant}\n"
    yield f"{head}{_COUNT}{number}{rest or ''}"


def with_selected_bfloats(text: str) -> str:
    """LLVM IR in which signed truth values become bfloat16 numbers by a select."""
    return _SIGNED_TRUTH.sub(_selected, text)


def _selected(found: re.Match[str]) -> str:
    result, source, value, target = found.groups()
    one = f"splat (bfloat {_MINUS_ONE})" if target.startswith("<") else _MINUS_ONE
    return f"{result}select {source} {value}, {target} {one}, {target} zeroinitializer"
