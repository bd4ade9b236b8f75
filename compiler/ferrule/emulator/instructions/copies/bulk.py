"""cp.async.bulk and cp.reduce.async.bulk, also of the boxes of tensor maps."""

from __future__ import annotations

from typing import Final

from ferrule.emulator.instructions.copies.helpers import address, named_helper, word
from ferrule.emulator.instructions.copies.threads import pending
from ferrule.emulator.instructions.forms import Named, form, kind
from ferrule.emulator.native.reductions import OPS, TYPES
from ferrule.emulator.ptx.module import Address, Group, Instruction, Operand
from ferrule.emulator.warps.emitter import Emitter

_BYTES: Final = r"\.mbarrier::complete_tx::bytes"
_HINT: Final = r"(?P<hint>\.L2::cache_hint)?"
_CAST: Final = r"(?P<cast>\.multicast::cluster)?"
_TILE: Final = r"(\.(?P<mode>tile))?"


def _without_hint(item: Instruction, named: Named) -> list[Operand]:
    return list(item.operands[:-1] if named.get("hint") else item.operands)


def _mask(e: Emitter, named: Named, rest: list[Operand]) -> tuple[str, str]:
    """The blocks of a multicast."""
    if len(rest) != (1 if named.get("cast") else 0):
        raise e.refuse(f"it has {len(e.item.operands)} operands")
    if not rest:
        return word(e, None)
    value = e.read(rest[0], "b16")
    return "<32 x i32>", e.op(f"zext <32 x i16> {value} to <32 x i32>")


@form(
    "cp",
    r"\.async\.bulk\.shared::(?P<to>cluster|cta)\.(?P<source>global)" + _BYTES + _CAST + _HINT,
    4,
    5,
    6,
)
@form("cp", r"\.async\.bulk\.shared::(?P<to>cluster)\.(?P<source>shared::cta)" + _BYTES, 4)
def _load(e: Emitter, item: Instruction, named: Named) -> None:
    _to_shared(e, item, named, 0)


def _to_shared(e: Emitter, item: Instruction, named: Named, how: int) -> None:
    operands = _without_hint(item, named)
    if len(operands) < 4 or (named["to"] == "cta" and named.get("cast")):
        raise e.refuse()
    to, source, size, barrier, *rest = operands
    mask = _mask(e, named, rest)
    from_shared = named["source"] != "global"
    given = [
        address(e, to, "cluster"),
        address(e, source, "shared" if from_shared else "global"),
        word(e, size),
        address(e, barrier, "cluster"),
        mask,
    ]
    settings = {"FROM_SHARED": int(from_shared), "MULTICAST": int(bool(named.get("cast")))}
    e.call(named_helper(e, "bulk_load", HOW=how, **settings), given, [])


@form("cp", r"\.async\.bulk\.global\.shared::cta\.bulk_group" + _HINT, 3, 4)
def _store(e: Emitter, item: Instruction, named: Named) -> None:
    _to_global(e, item, named, 0)


def _to_global(e: Emitter, item: Instruction, named: Named, how: int) -> None:
    operands = _without_hint(item, named)
    if len(operands) != 3:
        raise e.refuse(f"it has {len(item.operands)} operands")
    given = [address(e, operands[0], "global"), address(e, operands[1], "shared")]
    e.call(named_helper(e, "bulk_store", HOW=how), [*given, word(e, operands[2])], [])


_REDUCES: Final = (
    r"\.(?P<op>and|or|xor)\.(?P<t>b32|b64)",
    r"\.(?P<op>add|min|max)\.(?P<t>[us](32|64))",
    r"\.(?P<op>inc|dec)\.(?P<t>u32)",
)
_REDUCES_HALVES: Final = (
    r"\.(?P<op>add)\.noftz\.(?P<t>f16|bf16)",
    r"\.(?P<op>min|max)\.(?P<t>f16|bf16)",
    r"\.(?P<op>add)\.(?P<t>f32|f64)",
)


def _how(named: Named) -> int:
    """Operation and type, as the native text has them; 0 is none."""
    t = kind(named)
    return (
        1
        + OPS.index(kind(named, "op"))
        + 16 * TYPES.index(t.replace("b", "u") if t[1:].isdigit() else t)
    )


def _reduce(e: Emitter, item: Instruction, named: Named) -> None:
    if "global" in item.modifiers:
        _to_global(e, item, named, _how(named))
    else:
        _to_shared(e, item, named, _how(named))


for _form in (*_REDUCES, *_REDUCES_HALVES):
    form("cp", r"\.reduce\.async\.bulk\.global\.shared::cta\.bulk_group" + _HINT + _form, 3, 4)(
        _reduce
    )
for _form in _REDUCES:
    form(
        "cp",
        r"\.reduce\.async\.bulk\.shared::(?P<to>cluster)\.(?P<source>shared::cta)" + _BYTES + _form,
        4,
    )(_reduce)


@form("cp", r"\.async\.bulk\.commit_group", 0)
def _commit(e: Emitter, item: Instruction, named: Named) -> None:
    e.call(named_helper(e, "bulk_commit"), [], [])


@form("cp", r"\.async\.bulk\.wait_group(\.read)?", 1)
def _wait(e: Emitter, item: Instruction, named: Named) -> None:
    e.call(named_helper(e, "bulk_wait", PENDING=pending(e, item)), [], [])


@form("cp", r"\.async\.bulk\.prefetch\.L2\.global(\.L2::cache_hint)?", 2, 3)
@form(
    "cp", r"\.async\.bulk\.prefetch\.tensor\.[1-5]d\.L2\.global(\.tile)?(\.L2::cache_hint)?", 1, 2
)
@form("cp", r"\.async\.bulk\.prefetch\.tensor\.[3-5]d\.L2\.global\.im2col(\.L2::cache_hint)?", 2, 3)
@form("prefetch", r"(\.(param|const))?\.tensormap", 1)
def _nothing(e: Emitter, item: Instruction, named: Named) -> None:
    """Nothing takes time."""


# ---- tensor maps that kernels make ----

_FIELDS: Final = (
    "global_address", "rank", "box_dim", "global_dim", "global_stride", "element_stride",
    "elemtype", "interleave_layout", "swizzle_mode", "fill_mode",
)  # fmt: skip
_OF_DIMS: Final = frozenset(_FIELDS[2:6])
_REPLACE: Final = r"\.replace\.tile\.(?P<field>{})(\.(?P<space>global|shared::cta))?\.b1024"


@form("tensormap", _REPLACE.format("global_address") + r"\.(?P<t>b64)", 2)
@form("tensormap", _REPLACE.format("global_stride") + r"\.(?P<t>b64)", 3)
@form("tensormap", _REPLACE.format("global_dim|box_dim|element_stride") + r"\.(?P<t>b32)", 3)
@form("tensormap", _REPLACE.format("rank|elemtype|interleave_layout|swizzle_mode|fill_mode")
      + r"\.(?P<t>b32)", 2)  # fmt: skip
def _replace(e: Emitter, item: Instruction, named: Named) -> None:
    """A rank is one less than it is; types of elements have numbers that are not the driver's."""
    place, *rest = item.operands
    space = (named["space"] or "generic").partition("::")[0]
    dim = word(e, rest[0] if kind(named, "field") in _OF_DIMS else None)
    value = e.read(rest[-1], kind(named))
    if kind(named) == "b32":
        value = e.op(f"zext <32 x i32> {value} to <32 x i64>")
    settings = {"FIELD": _FIELDS.index(kind(named, "field")), "FROM_SHARED": int(space == "shared")}
    given = [address(e, place, space), dim, ("<32 x i64>", value)]
    e.call(named_helper(e, "map_replace", **settings), given, [])


@form("tensormap", r"\.cp_fenceproxy\.global\.shared::cta\.tensormap::generic\.release"
      r"\.(cta|cluster|gpu|sys)\.sync\.aligned", 3)  # fmt: skip
def _copy_map(e: Emitter, item: Instruction, named: Named) -> None:
    """The warp copies one map, of 128 bytes."""
    if getattr(item.operands[2], "value", 128) != 128:
        raise e.refuse("a tensor map has 128 bytes")
    given = [address(e, item.operands[0], "global"), address(e, item.operands[1], "shared")]
    e.call(named_helper(e, "map_copy"), given, [])


# ---- boxes of tensor maps, and columns of im2col ----


def _box(e: Emitter, operand: Operand, dims: int) -> list[tuple[str, str]]:
    """`[map, {x, y}]`: the map's address, then coordinates."""
    if not isinstance(operand, Group) or operand.kind != "[" or len(operand.items) != 2:
        raise e.refuse("wanted [map, {coordinates}]")
    place, coordinates = operand.items
    items = coordinates.items if isinstance(coordinates, Group) else (coordinates,)
    if len(items) != dims or not isinstance(place, Address):
        raise e.refuse(f"wanted a map and {dims} coordinates")
    return [("<32 x i64>", e.address(place, "generic")), *(word(e, each) for each in items)]


@form("cp", r"\.async\.bulk\.tensor\.(?P<dims>[1-5])d\.shared::(?P<to>cluster|cta)\.global" + _TILE
      + _BYTES + _CAST + _HINT, 3, 4, 5)  # fmt: skip
def _load_tensor(e: Emitter, item: Instruction, named: Named) -> None:
    operands = _without_hint(item, named)
    if len(operands) < 3 or (named["to"] == "cta" and named["cast"]):
        raise e.refuse(f"it has {len(item.operands)} operands")
    _fetch(e, named, operands, [], {})


@form("cp", r"\.async\.bulk\.tensor\.(?P<dims>[3-5])d\.shared::(?P<to>cluster|cta)\.global"
      r"\.im2col" + _BYTES + _CAST + _HINT, 4, 5, 6)  # fmt: skip
def _load_columns(e: Emitter, item: Instruction, named: Named) -> None:
    """The pixels of an image for a column of a matrix; offsets of 16 bits follow the mbarrier."""
    operands = _without_hint(item, named)
    if len(operands) < 4 or (named["to"] == "cta" and named["cast"]):
        raise e.refuse(f"it has {len(item.operands)} operands")
    offsets = operands.pop(3)
    items = offsets.items if isinstance(offsets, Group) else (offsets,)
    if len(items) != int(kind(named, "dims")) - 2:
        raise e.refuse(f"wanted {int(kind(named, 'dims')) - 2} offsets")
    values = [e.read(each, "b16") for each in items]
    wide = [("<32 x i32>", e.op(f"zext <32 x i16> {each} to <32 x i32>")) for each in values]
    _fetch(e, named, operands, wide, {"IM2COL": 1, "OFFSETS": len(items)})


def _fetch(
    e: Emitter,
    named: Named,
    operands: list[Operand],
    offsets: list[tuple[str, str]],
    settings: dict[str, int],
) -> None:
    to, box, barrier, *rest = operands
    mask = _mask(e, named, rest)
    dims = int(kind(named, "dims"))
    given = [*_box(e, box, dims), *offsets]
    given += [address(e, to, "cluster"), address(e, barrier, "cluster"), mask]
    settings = {"RANK_OF_COPY": dims, "MULTICAST": int(bool(named["cast"])), **settings}
    e.call_many(named_helper(e, "tensor_load", **settings), given, [])


_TENSOR_STORE: Final = r"\.async\.bulk\.tensor\.(?P<dims>[1-5])d\.global\.shared::cta"
_TENSOR_OPS: Final = r"\.(?P<op>add|min|max|inc|dec|and|or|xor)"


_MODE: Final = r"(\.tile|(?P<im2col>\.im2col_no_offs))?"


@form("cp", _TENSOR_STORE + _MODE + r"\.bulk_group" + _HINT, 2, 3)
@form("cp", r"\.reduce" + _TENSOR_STORE + _TENSOR_OPS + _MODE + r"\.bulk_group" + _HINT, 2, 3)
def _store_tensor(e: Emitter, item: Instruction, named: Named) -> None:
    operands = _without_hint(item, named)
    if len(operands) != 2:
        raise e.refuse(f"it has {len(item.operands)} operands")
    dims = int(kind(named, "dims"))
    op = named.get("op")
    given = [*_box(e, operands[0], dims), address(e, operands[1], "shared")]
    settings = {"RANK_OF_COPY": dims, "HOW": 1 + OPS.index(op) if op else 0}
    settings["IM2COL"] = int(bool(named.get("im2col")))
    e.call_many(named_helper(e, "tensor_store", **settings), given, [])
