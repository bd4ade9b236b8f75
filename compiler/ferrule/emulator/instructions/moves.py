"""Moves, and loads and stores of all state spaces."""

from __future__ import annotations

from typing import Final

from ferrule.emulator.instructions.forms import Named, form, kind
from ferrule.emulator.ptx.cursor import BYTES
from ferrule.emulator.ptx.module import Address, Group, Instruction, Operand, Register, Symbol
from ferrule.emulator.warps import layout
from ferrule.emulator.warps.emitter import SCALARS, Emitter, bits_of, items_of, splat

_ALL = r"\.(?P<t>[bsu](8|16|32|64)|f(16|32|64)|bf16|b16|f16x2|bf16x2)"
_MOVED = r"\.(?P<t>pred|[bsu](16|32|64)|f(32|64|16)|bf16|f16x2|bf16x2)"
_HINT = r"(\.(ca|cg|cs|lu|cv|wb|wt))?"
_EVICT = (
    r"(\.L1::(evict_normal|evict_unchanged|evict_first|evict_last|no_allocate))?"
    r"(?P<hint>\.L2::cache_hint)?(\.L2::(64B|128B|256B))?"
)
_ORDER = (
    r"(\.weak|\.volatile|\.mmio\.relaxed\.sys"
    r"|(\.relaxed|\.acquire|\.release)(\.(cta|cluster|gpu|sys)))?"
)
_SPACE = (
    r"(\.(?P<space>param|param::entry|param::func|global|const|local|shared|shared::cta"
    r"|shared::cluster))?"
)


@form("mov", _MOVED, 2)
def _mov(e: Emitter, item: Instruction, named: Named) -> None:
    to, source = item.operands
    t = kind(named)
    if isinstance(to, Group):
        _unpack(e, to, source, t)
    elif isinstance(source, Group):
        _pack(e, to, source, t)
    elif isinstance(source, Symbol):
        e.write(to, t, _symbol(e, source, t))
    else:
        e.write(to, t, e.read(source, t))


@form("mov", r"\.b128", 2)
def _mov_wide(e: Emitter, item: Instruction, named: Named) -> None:
    """Registers of 128 bits are two of 64, so that to pack and to unpack is to move both."""
    to, source = (items_of(each) for each in item.operands)
    if len(to) != 2 or len(source) != 2:
        raise e.refuse("wanted a register of 128 bits or two of 64 on each side")
    values = [e.read(each, "b64") for each in source]
    for register, value in zip(to, values, strict=True):
        e.write(register, "b64", value)


def _symbol(e: Emitter, source: Symbol, t: str) -> str:
    space, value = e.symbol(source)
    if bits_of(t) == 64:
        return value
    if bits_of(t) == 32 and space == "param":
        return splat("i32", str(e.names.symbols[source.name][1] + source.offset))
    if bits_of(t) != 32 or space not in ("shared", "local"):
        raise e.refuse(f"the address of {source.name} in {bits_of(t)} bits")
    return e.op(f"trunc <32 x i64> {value} to <32 x i32>")


def _unpack(e: Emitter, to: Group, source: Operand, t: str) -> None:
    """`mov.b32 {lo, hi}, r`: the parts of a register."""
    each = bits_of(t) // len(to.items)
    if to.kind != "{" or each not in (8, 16, 32) or each * len(to.items) != bits_of(t):
        raise e.refuse()
    whole = e.read(source, f"b{bits_of(t)}")
    llvm = f"<32 x i{bits_of(t)}>"
    parts = []
    for i in range(len(to.items)):
        shifted = e.op(f"lshr {llvm} {whole}, {splat(f'i{bits_of(t)}', str(i * each))}")
        parts.append(e.op(f"trunc {llvm} {shifted} to <32 x i{each}>"))
    for register, part in zip(to.items, parts, strict=True):
        e.write(register, f"b{each}", part)


def _pack(e: Emitter, to: Operand, source: Group, t: str) -> None:
    each = bits_of(t) // len(source.items)
    if source.kind != "{" or each not in (8, 16, 32) or each * len(source.items) != bits_of(t):
        raise e.refuse()
    llvm, word = f"<32 x i{bits_of(t)}>", f"i{bits_of(t)}"
    whole = splat(word, "0")
    for i, item in enumerate(source.items):
        part = e.op(f"zext <32 x i{each}> {e.read(item, f'b{each}')} to {llvm}")
        part = e.op(f"shl {llvm} {part}, {splat(word, str(i * each))}")
        whole = e.op(f"or {llvm} {whole}, {part}")
    e.write(to, f"b{bits_of(t)}", whole)


@form(
    "cvta",
    r"(?P<to>\.to)?\.(?P<space>global|const|local|param|shared|shared::cta|param::entry)\.u64",
    2,
)
def _cvta(e: Emitter, item: Instruction, named: Named) -> None:
    """Generic addresses are those of global memory; a shared one is the window's start more, and
    a local one the start of the lane's own memory."""
    to, source = item.operands
    space = kind(named, "space").partition("::")[0]
    if isinstance(source, Symbol):
        value = e.symbol(source)[1]
    else:
        value = e.read(source, "u64")
    if space == "shared":
        place = e.op(f"getelementptr i8, ptr %w, i64 {layout.SHARED}")
        base = e.spread(e.op(f"load i64, ptr {place}"), "i64")
        value = e.op(f"{'sub' if named['to'] else 'add'} <32 x i64> {value}, {base}")
    if space == "local":
        value = e.op(f"{'sub' if named['to'] else 'add'} <32 x i64> {value}, %locals")
    if space == "param":
        value = e.in_parameters(value)
    e.write(to, "u64", value)


@form("isspacep", r"\.(?P<space>global|shared|shared::cta)", 2)
def _isspacep(e: Emitter, item: Instruction, named: Named) -> None:
    """Whether a generic address is in the block's window, or in the part of global memory."""
    value = e.read(item.operands[1], "u64")
    if named["space"] == "global":
        start, size = layout.ARENA, layout.GLOBAL_SIZE
    else:
        start, size = layout.SHARED_BASE, layout.SHARED_SIZE
    base = e.spread(e.block_field(start, "i64"), "i64")
    limit = e.spread(e.block_field(size, "i64"), "i64")
    offset = e.op(f"sub <32 x i64> {value}, {base}")
    e.write(item.operands[0], "pred", e.op(f"icmp ult <32 x i64> {offset}, {limit}"))


@form("isspacep", r"\.(?P<space>local|param|param::entry)", 2)
def _is_own(e: Emitter, item: Instruction, named: Named) -> None:
    """The same of the thread's own memory, and of the kernel's parameters."""
    value = e.read(item.operands[1], "u64")
    if named["space"] == "local":
        base = e.own(splat("i64", "0"))
        place = e.op(f"getelementptr i8, ptr %w, i64 {layout.LOCAL_SIZE}")
        size = e.op(f"load i64, ptr {place}")
    else:
        base = e.in_parameters(splat("i64", "0"))
        size = e.block_field(layout.PARAMETER_SIZE, "i64")
    offset = e.op(f"sub <32 x i64> {value}, {base}")
    inside = e.op(f"icmp ult <32 x i64> {offset}, {e.spread(size, 'i64')}")
    e.write(item.operands[0], "pred", inside)


def _space(e: Emitter, named: Named, operand: Operand) -> str:
    """The space of an access; parameters of functions that were copied in are local."""
    if named["space"] == "shared::cluster":
        return "cluster"
    space = (named["space"] or "generic").partition("::")[0]
    if space == "param" and isinstance(operand, Address) and isinstance(operand.base, Symbol):
        return e.names.symbols.get(operand.base.name, ("param", 0))[0]
    return space


def _elements(e: Emitter, operand: Operand, named: Named) -> tuple[tuple[Operand, ...], str]:
    """What is loaded or stored, and the type of each: of 128 bits two halves, the lower first."""
    t, items = kind(named), items_of(operand)
    wide = t == "b128"
    if len(items) != (2 if wide else int((named["v"] or "v1")[1])):
        raise e.refuse("the number of registers is another")
    return items, "b64" if wide else t


def _hinted(e: Emitter, item: Instruction, named: Named) -> tuple[Operand, Operand]:
    """Both operands of an access, without the policy for the cache behind them."""
    to, source, *policy = item.operands
    if bool(named["hint"]) != bool(policy):
        raise e.refuse(f"it has {len(item.operands)} operands")
    if policy:
        e.read(policy[0], "b64")
    return to, source


@form("ld", _ORDER + _SPACE + _HINT + r"(\.nc)?" + _EVICT + r"\.(?P<t>b128)", 2, 3)
@form("ld", _ORDER + _SPACE + _HINT + r"(\.nc)?" + _EVICT + r"(\.(?P<v>v2|v4))?" + _ALL, 2, 3)
@form("ldu", r"(\.(?P<space>global))?(?P<hint>)(\.(?P<v>v2|v4))?" + _ALL, 2)
def _ld(e: Emitter, item: Instruction, named: Named) -> None:
    to, source = _hinted(e, item, named)
    results, t = _elements(e, to, named)
    space = _space(e, named, source)
    assert isinstance(source, Address)
    if space == "param" and isinstance(source.base, Symbol):
        _ld_param(e, results, source, t)
        return
    address = e.address(source, space)
    width = BYTES[t]
    name = f"load:{_checked_space(e, space)}:{width}:{len(results)}:{_how(e)}"
    values = e.call(name, [("<32 x i64>", address)], [f"<32 x i{8 * width}>"] * len(results))
    for register, value in zip(results, values, strict=True):
        e.write(register, t, e.cast(value, f"b{8 * width}", t), wider=True)


def _checked_space(e: Emitter, space: str) -> str:
    """The memory of an address, as the helper's argument; without checks most share one."""
    return space if space == "shared" or e.names.checked else "generic"


def _how(e: Emitter) -> str:
    return "checked" if e.names.checked else "free"


def _ld_param(e: Emitter, results: tuple[Operand, ...], source: Address, t: str) -> None:
    """Parameters of the kernel: the same for all lanes."""
    assert isinstance(source.base, Symbol)
    if source.base.name not in e.names.symbols:
        raise e.refuse(f"there is no parameter {source.base.name}")
    offset = e.names.symbols[source.base.name][1] + source.offset
    for i, register in enumerate(results):
        place = e.op(f"getelementptr i8, ptr %params, i64 {offset + i * BYTES[t]}")
        llvm = SCALARS[t]
        # Nobody writes to the parameters while a kernel runs.
        value = e.op(f"load {llvm}, ptr {place}, align 1, !invariant.load !0")
        e.write(register, t, e.spread(value, llvm), wider=True)


@form("st", _ORDER + _SPACE + _HINT + _EVICT + r"\.(?P<t>b128)", 2, 3)
@form("st", _ORDER + _SPACE + _HINT + _EVICT + r"(\.(?P<v>v2|v4))?" + _ALL, 2, 3)
def _st(e: Emitter, item: Instruction, named: Named) -> None:
    to, source = _hinted(e, item, named)
    values, t = _elements(e, source, named)
    space = _space(e, named, to)
    if space in ("param", "const") and not (space == "param" and _is_local(e, to)):
        raise e.refuse(f"a store to .{space}")
    address = e.address(to, space)
    width = BYTES[t]
    name = f"store:{_checked_space(e, space)}:{width}:{len(values)}:{_how(e)}"
    given = [("<32 x i64>", address)]
    for value in values:
        bits = e.cast(e.read(value, t, wider=True), t, f"b{8 * width}")
        given.append((f"<32 x i{8 * width}>", bits))
    e.call(name, given, [])


def _is_local(e: Emitter, operand: Operand) -> bool:
    base = operand.base if isinstance(operand, Address) else None
    return isinstance(base, Register)


_WHEN: Final = r"\.L2::evict_(last|normal|first|unchanged)"


@form("createpolicy", rf"\.fractional{_WHEN}(\.L2::evict_(first|unchanged))?\.b64", 1, 2)
@form("createpolicy", rf"\.range(\.global)?{_WHEN}(\.L2::evict_(first|unchanged))?\.b64", 4)
@form("createpolicy", r"\.cvt\.L2\.b64", 2)
def _policy(e: Emitter, item: Instruction, named: Named) -> None:
    """What a cache should keep; there is none, and nobody can look into the value."""
    e.write(item.operands[0], "b64", splat("i64", "0"))


@form("applypriority", r"(\.global)?\.L2::evict_normal", 2)
@form("pmevent", r"(\.mask)?", 1)
@form("prefetch", r"(\.(global|local))?\.(L1|L2)(::evict_(last|normal))?", 1)
@form("prefetchu", r"\.L1", 1)
@form("membar", r"\.(cta|gl|sys)", 0)
@form("fence", r"(\.(sc|acq_rel|acquire|release))?\.(cta|cluster|gpu|sys)", 0)
@form("nanosleep", r"\.u32", 1)
@form("discard", r"(\.global)?\.L2", 2)
def _nothing(e: Emitter, item: Instruction, named: Named) -> None:
    """Of no meaning where memory is sequentially consistent and nothing takes time."""
