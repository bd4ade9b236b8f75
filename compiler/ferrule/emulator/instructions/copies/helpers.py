"""The helpers of mbarriers and asynchronous copies, and what their instructions have in common."""

from __future__ import annotations

from ferrule.emulator.instructions.forms import Named
from ferrule.emulator.instructions.helpers import helper
from ferrule.emulator.native.bulk import CONSTANTS, SOURCE
from ferrule.emulator.native.language import functions, helper_text
from ferrule.emulator.native.shared import SHARED
from ferrule.emulator.ptx.module import Operand
from ferrule.emulator.warps.emitter import Emitter, splat


@helper("async")
def _async(name: str, entry: str, *settings: str) -> str:
    """`async:arrive:GENERIC=1:checked`: an entry of the native text, and constants of it."""
    constants = dict(CONSTANTS)
    constants["CHECKED"] = int("checked" in settings)
    for each in settings:
        key, found, value = each.partition("=")
        if found:
            constants[key] = int(value)
    pointers = len(functions(SOURCE)[entry].args.args) - 2
    return helper_text(name, SOURCE, entry, pointers, constants, SHARED)


def named_helper(e: Emitter, entry: str, **settings: int) -> str:
    """The name of a helper."""
    parts = [f"{key}={value}" for key, value in settings.items() if value]
    return ":".join(["async", entry, *parts, "checked" if e.names.checked else "free"])


def space_of(named: Named) -> tuple[str, dict[str, int]]:
    """The space of an mbarrier's address, and the settings that say so."""
    space = named.get("space")
    if space is None:
        return "generic", {"GENERIC": 1}
    if space == "shared::cluster":
        return "cluster", {"IN_CLUSTER": 1}
    return "shared", {}


def address(e: Emitter, operand: Operand, space: str) -> tuple[str, str]:
    """An address as a helper is given it."""
    return "<32 x i64>", e.address(operand, space)


def word(e: Emitter, operand: Operand | None, otherwise: int = 0) -> tuple[str, str]:
    """A number of 32 bits as a helper is given it."""
    if operand is None:
        return "<32 x i32>", splat("i32", str(otherwise))
    return "<32 x i32>", e.read(operand, "b32")
