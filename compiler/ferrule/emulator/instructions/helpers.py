"""Functions in LLVM that kernels call: what is done lane by lane, and what many kernels need.

Each has the type `i32 (ptr warp, i32 mask, ptr a, ptr b, …)`, whose pointers are to a value for
each of the 32 lanes, and returns 1 if a lane failed (the warp has the fault), else 0.
A helper is known by its name, which says all of it; `text` writes it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Final

from ferrule.emulator.warps.layout import (
    ARENA,
    BLOCK,
    C_BLOCKS,
    C_SIZE,
    CLUSTER,
    ENDED,
    FAULT,
    FAULT_ADDRESS,
    FAULT_LANE,
    FAULT_SIZE,
    GLOBAL_SIZE,
    LOCAL,
    LOCAL_SIZE,
    LOCAL_STRIDE,
    MEMORY,
    MISALIGNED,
    PARAMETER_SIZE,
    PARAMETERS,
    SHADOW,
    SHARED,
    SHARED_BASE,
    SHARED_SIZE,
    SPACE,
    THREADS,
)

Writer = Callable[..., str]
_WRITERS: Final[dict[str, Writer]] = {}


def helper(kind: str) -> Callable[[Writer], Writer]:
    """Marks the writer of helpers whose names begin so; the rest of a name are its arguments."""

    def mark(writer: Writer) -> Writer:
        _WRITERS[kind] = writer
        return writer

    return mark


@cache
def text(name: str) -> str:
    """The helper of a name, such as `load:global:4:1:checked`."""
    kind, *arguments = name.split(":")
    return _WRITERS[kind](name, *arguments)


@cache
def declaration(name: str) -> str:
    """The declaration of a helper for a text that calls it."""
    head = next(each for each in text(name).splitlines() if f'@"{name}"' in each)
    types = [each.split()[0] for each in head.partition("(")[2].partition(")")[0].split(",")]
    return f'declare i32 @"{name}"({", ".join(types)})\n'


def field(base: str, offset: int, name: str) -> str:
    """The address of a field of a struct."""
    return f"  %{name} = getelementptr i8, ptr {base}, i64 {offset}\n"


def loaded(base: str, offset: int, kind: str, name: str) -> str:
    """A field's value."""
    return (
        f"  %{name}.p = getelementptr i8, ptr {base}, i64 {offset}\n"
        f"  %{name} = load {kind}, ptr %{name}.p, align 4\n"
    )


def by_lane(
    name: str, parameters: int, before: str, body: str, after: str = "", failing: bool = False
) -> str:
    """A function that does `body` for each lane of the mask, `%i` its number.

    `body` ends in a jump to %next; where `failing`, it may jump to %fault, and sets the phi's
    operands itself by storing into %kind and %where.
    """
    pointers = "".join(f", ptr %p{i}" for i in range(parameters))
    fault = _FAULT if failing else ""
    places = (
        "  %kind = alloca i32\n  %where = alloca i64\n  %size = alloca i32\n" if failing else ""
    )
    return f"""define i32 @"{name}"(ptr %w, i32 %mask{pointers}) {{
entry:
{places}{before}  br label %head
head:
  %m = phi i32 [%mask, %entry], [%m2, %next]
  %empty = icmp eq i32 %m, 0
  br i1 %empty, label %done, label %body
body:
  %lane = call i32 @llvm.cttz.i32(i32 %m, i1 true)
  %i = zext i32 %lane to i64
{body}next:
  %m1 = sub i32 %m, 1
  %m2 = and i32 %m, %m1
  br label %head
done:
{after}  ret i32 0
{fault}}}
"""


_FAULT: Final = f"""fault:
  %k = load i32, ptr %kind
  %a.wrong = load i64, ptr %where
  %s.wrong = load i32, ptr %size
  %f.kind = getelementptr i8, ptr %w, i64 {FAULT}
  store i32 %k, ptr %f.kind
  %f.lane = getelementptr i8, ptr %w, i64 {FAULT_LANE}
  store i32 %lane, ptr %f.lane
  %f.address = getelementptr i8, ptr %w, i64 {FAULT_ADDRESS}
  store i64 %a.wrong, ptr %f.address
  %f.size = getelementptr i8, ptr %w, i64 {FAULT_SIZE}
  store i32 %s.wrong, ptr %f.size
  ret i32 1
"""


def failed(kind: int, where: str = "0", size: int = 0) -> str:
    """Note a fault, and jump to %fault."""
    return (
        f"  store i32 {kind}, ptr %kind\n  store i64 {where}, ptr %where\n"
        f"  store i32 {size}, ptr %size\n  br label %fault\n"
    )


def lane_value(pointer: str, kind: str, name: str) -> str:
    """The value of lane `%i`."""
    return (
        f"  %{name}.at = getelementptr {kind}, ptr {pointer}, i64 %i\n"
        f"  %{name} = load {kind}, ptr %{name}.at\n"
    )


def put(pointer: str, kind: str, value: str) -> str:
    """Give lane `%i` its value."""
    return f"  %to = getelementptr {kind}, ptr {pointer}, i64 %i\n  store {kind} {value}, ptr %to\n"


# ---- memory ----


def prepared(space: str, checked: bool) -> str:
    """What a function that touches memory needs before its loop."""
    found = loaded("%w", BLOCK, "ptr", "block")
    if space == "shared":
        return (
            found
            + loaded("%w", SHARED, "i64", "base")
            + loaded("%block", SHARED_SIZE, "i64", "limit")
        )
    if space == "cluster":
        return found + loaded("%block", CLUSTER, "ptr", "cluster")
    if not checked:
        return found
    if space == "local":
        return found + _LOCAL_FIELDS
    if space == "param":
        return found + _PARAMETER_FIELDS
    return (
        found
        + loaded("%block", ARENA, "i64", "arena")
        + loaded("%block", GLOBAL_SIZE, "i64", "limit")
        + loaded("%block", SHADOW, "ptr", "shadow")
        + (_GENERIC_FIELDS if space == "generic" else "")
    )


_LOCAL_FIELDS: Final = (
    loaded("%w", LOCAL, "i64", "local")
    + loaded("%w", LOCAL_STRIDE, "i64", "stride")
    + loaded("%w", LOCAL_SIZE, "i64", "local.n")
)
_PARAMETER_FIELDS: Final = loaded("%w", PARAMETERS, "i64", "params") + loaded(
    "%block", PARAMETER_SIZE, "i64", "params.n"
)
_GENERIC_FIELDS: Final = (
    _LOCAL_FIELDS
    + _PARAMETER_FIELDS
    + loaded("%w", SHARED, "i64", "base")
    + loaded("%block", SHARED_SIZE, "i64", "window")
)
_OWN: Final = """  %own.o = mul i64 %i, %stride
  %own = add i64 %local, %own.o
"""


def located(space: str, size: int, checked: bool, *, stores: bool = False) -> str:
    """From the address `%a` of a lane to the pointer `%q`, checked; begins in %body."""
    if space == "shared":
        return _in_window(size)
    if space == "cluster":
        return _in_cluster(size)
    if not checked:
        return "  %q = inttoptr i64 %a to ptr\n"
    aligned = f"""  %low = and i64 %a, {size - 1}
  %aligned = icmp eq i64 %low, 0
  br i1 %aligned, label %range, label %misaligned
misaligned:
{failed(MISALIGNED, "%a", size)}"""
    if space == "local":
        places = "range:\n" + _OWN + _inside("own", "%own", "%local.n", size, "good", "outside")
    elif space == "param":
        places = "range:\n" + _inside("own", "%params", "%params.n", size, "good", "outside")
    else:
        places = _global(size, "elsewhere" if space == "generic" else "outside")
    if space == "generic":
        places += "elsewhere:\n" + _OWN
        places += _inside("own", "%own", "%local.n", size, "good", "window.look")
        places += "window.look:\n"
        last = "peers" if stores else "given.look"
        places += _inside("win", "%base", "%window", size, "good", last)
        if not stores:
            places += "given.look:\n"
            places += _inside("given", "%params", "%params.n", size, "good", "peers")
        places += _in_peers(size)
    kind = SPACE if space in ("local", "param") else MEMORY
    return f"""{aligned}{places}outside:
{failed(kind, "%a", size)}good:
  %q = inttoptr i64 %a to ptr
"""


def _in_peers(size: int) -> str:
    """Whether the bytes are in the shared memory of a block of the same cluster."""
    inside = _inside("peer", "%peer.start", "%peer.bytes", size, "peer.alive", "peer.next")
    return f"""peers:
{loaded("%block", CLUSTER, "ptr", "peers.c")}{loaded("%peers.c", C_SIZE, "i32", "peers.n")}\
  br label %peer.head
peer.head:
  %peer.i = phi i32 [0, %peers], [%peer.i1, %peer.next]
  %peer.more = icmp ult i32 %peer.i, %peers.n
  br i1 %peer.more, label %peer.look, label %outside
peer.look:
  %peer.blocks = getelementptr i8, ptr %peers.c, i64 {C_BLOCKS}
  %peer.at = getelementptr ptr, ptr %peer.blocks, i32 %peer.i
  %peer = load ptr, ptr %peer.at
{loaded("%peer", SHARED_BASE, "i64", "peer.start")}\
{loaded("%peer", SHARED_SIZE, "i64", "peer.bytes")}\
{inside}peer.alive:
{loaded("%peer", THREADS, "i32", "peer.live")}\
  %peer.gone = icmp eq i32 %peer.live, 0
  br i1 %peer.gone, label %peer.ended, label %good
peer.ended:
{failed(ENDED, "%a", size)}peer.next:
  %peer.i1 = add i32 %peer.i, 1
  br label %peer.head
"""


def _inside(name: str, start: str, length: str, size: int, yes: str, no: str) -> str:
    """Whether `size` bytes at `%a` are inside of `length` bytes at `start`."""
    return f"""  %{name}.d = sub i64 %a, {start}
  %{name}.e = add i64 %{name}.d, {size}
  %{name}.0 = icmp ult i64 %{name}.d, {length}
  %{name}.1 = icmp ule i64 %{name}.e, {length}
  %{name}.in = and i1 %{name}.0, %{name}.1
  br i1 %{name}.in, label %{yes}, label %{no}
"""


def _global(size: int, no: str) -> str:
    """Whether the bytes are in an allocation of global memory."""
    # The shadow has a number for each 256 bytes: how many of them, from the first on, belong to an
    # allocation. An access is inside where its end is not above that.
    return f"""range:
  %off = sub i64 %a, %arena
  %in = icmp ult i64 %off, %limit
  br i1 %in, label %look, label %{no}
look:
  %page = lshr i64 %off, 8
  %valid.p = getelementptr i16, ptr %shadow, i64 %page
  %valid = load i16, ptr %valid.p
  %valid.l = zext i16 %valid to i64
  %within = and i64 %off, 255
  %last = add i64 %within, {size}
  %fits = icmp ule i64 %last, %valid.l
  br i1 %fits, label %good, label %outside
"""


def _in_window(size: int) -> str:
    return f"""  %low = and i64 %a, {size - 1}
  %aligned = icmp eq i64 %low, 0
  br i1 %aligned, label %range, label %misaligned
misaligned:
{failed(MISALIGNED, "%a", size)}range:
  %last = add i64 %a, {size}
  %in0 = icmp ule i64 %last, %limit
  %in1 = icmp ult i64 %a, %limit
  %in = and i1 %in0, %in1
  br i1 %in, label %good, label %outside
outside:
{failed(SPACE, "%a", size)}good:
  %real = add i64 %a, %base
  %q = inttoptr i64 %real to ptr
"""


def _in_cluster(size: int) -> str:
    """The window of the block itself, or of that whose rank the address has above bit 24."""
    # Ranks are stored one higher, so that an address of the block's own window, which has 0 there,
    # is one of the cluster as it stands.
    return f"""  %low = and i64 %a, {size - 1}
  %aligned = icmp eq i64 %low, 0
  br i1 %aligned, label %whose, label %misaligned
misaligned:
{failed(MISALIGNED, "%a", size)}whose:
  %rank.1 = lshr i64 %a, 24
  %own = icmp eq i64 %rank.1, 0
  %rank.0 = sub i64 %rank.1, 1
  %rank = select i1 %own, i64 0, i64 %rank.0
  %many.p = getelementptr i8, ptr %cluster, i64 {C_SIZE}
  %many = load i32, ptr %many.p
  %many.l = zext i32 %many to i64
  %known = icmp ult i64 %rank, %many.l
  br i1 %known, label %range, label %outside
range:
  %blocks = getelementptr i8, ptr %cluster, i64 {C_BLOCKS}
  %other.p = getelementptr ptr, ptr %blocks, i64 %rank
  %other = load ptr, ptr %other.p
  %one = select i1 %own, ptr %block, ptr %other
{loaded("%one", THREADS, "i32", "one.live")}\
  %one.gone = icmp eq i32 %one.live, 0
  br i1 %one.gone, label %ended, label %whose.window
ended:
{failed(ENDED, "%a", size)}whose.window:
  %base.p = getelementptr i8, ptr %one, i64 {SHARED_BASE}
  %base = load i64, ptr %base.p
  %limit.p = getelementptr i8, ptr %one, i64 {SHARED_SIZE}
  %limit = load i64, ptr %limit.p
  %within = and i64 %a, 16777215
  %last = add i64 %within, {size}
  %in = icmp ule i64 %last, %limit
  br i1 %in, label %good, label %outside
outside:
{failed(SPACE, "%a", size)}good:
  %real = add i64 %within, %base
  %q = inttoptr i64 %real to ptr
"""


@helper("load")
def _load(name: str, space: str, width: str, count: str, how: str) -> str:
    """`load:space:bytes:elements:how`: addresses, then a place for each element of the vector."""
    size, many = int(width), int(count)
    kind = f"i{size * 8}"
    body = lane_value("%p0", "i64", "a") + located(space, size * many, how == "checked")
    for i in range(many):
        body += (
            f"  %e{i}.p = getelementptr {kind}, ptr %q, i64 {i}\n"
            f"  %e{i} = load volatile {kind}, ptr %e{i}.p\n"
            f"  %to{i} = getelementptr {kind}, ptr %p{1 + i}, i64 %i\n"
            f"  store {kind} %e{i}, ptr %to{i}\n"
        )
    whole = by_lane(
        name, 1 + many, prepared(space, how == "checked"), body + "  br label %next\n", "", True
    )
    alone = space == "cluster" or (space in ("local", "param") and how != "free")
    return whole if alone else _with_row(whole, "load", space, size, many, how == "checked")


@helper("store")
def _store(name: str, space: str, width: str, count: str, how: str) -> str:
    """`store:space:bytes:elements:how`: addresses, then each element of the vector."""
    size, many = int(width), int(count)
    kind = f"i{size * 8}"
    body = lane_value("%p0", "i64", "a") + located(
        space, size * many, how == "checked", stores=True
    )
    for i in range(many):
        body += lane_value(f"%p{1 + i}", kind, f"v{i}")
        body += (
            f"  %e{i}.p = getelementptr {kind}, ptr %q, i64 {i}\n"
            f"  store volatile {kind} %v{i}, ptr %e{i}.p\n"
        )
    whole = by_lane(
        name, 1 + many, prepared(space, how == "checked"), body + "  br label %next\n", "", True
    )
    alone = space == "cluster" or (space in ("local", "param") and how != "free")
    return whole if alone else _with_row(whole, "store", space, size, many, how == "checked")


def _with_row(whole: str, what: str, space: str, size: int, many: int, checked: bool) -> str:
    """The function with ways of its own for 32 lanes at places in a row, in two rows of 16, or, of
    loads, at one place for each 16, as blocks of 16 by 16 threads have them.

    Gaps of 256 bytes lie between allocations, so that places in a row are all good where the
    first, the one in the middle and the last are.
    """
    found = _Places(what, space, size, many, checked)
    bytes_ = size * many
    good = _row_shared(bytes_) if space == "shared" else _row_plain(bytes_) if checked else _ROW_ANY
    steps = ", ".join(f"i64 {i * bytes_}" for i in range(32))
    row = f"""  %all = icmp eq i32 %mask, -1
  br i1 %all, label %row, label %lanes
row:
  %row.a = load <32 x i64>, ptr %p0, align 8
  %row.0 = extractelement <32 x i64> %row.a, i32 0
  %row.s = insertelement <32 x i64> poison, i64 %row.0, i32 0
  %row.b = shufflevector <32 x i64> %row.s, <32 x i64> poison, <32 x i32> zeroinitializer
  %row.w = add <32 x i64> %row.b, <{steps}>
  %row.n = icmp ne <32 x i64> %row.a, %row.w
  %row.i = bitcast <32 x i1> %row.n to i32
  %row.no = icmp ne i32 %row.i, 0
  br i1 %row.no, label %half, label %row.first
row.first:
  %row.l = and i64 %row.0, {bytes_ - 1}
  %row.u = icmp ne i64 %row.l, 0
  br i1 %row.u, label %{found.rest}, label %row.look
{good}row.move:
{found.moved("%row.q", 32, 0)}  ret i32 0
{found.halves()}{found.each()}lanes:
  br label %head
"""
    return whole.replace("  br label %head\nhead:\n", row + "head:\n", 1).replace(
        "[%mask, %entry]", "[%mask, %lanes]", 1
    )


class _Places:
    """The text for 32 lanes whose places are known to be good, of `many` elements each."""

    def __init__(self, what: str, space: str, size: int, many: int, checked: bool) -> None:
        self._loads = what == "load"
        self._shared = space == "shared"
        self._kind = f"i{size * 8}"
        self._many = many
        self._align = size
        self._size = size * many
        self._checked = checked
        self.rest = "each" if self._shared or not checked else "lanes"
        """Where other places are moved one by one."""

    def moved(self, place: str, lanes: int, first: int) -> str:
        """So many lanes from `first` on, whose places lie in a row: the elements of a lane
        together in memory, those of all lanes together in registers."""
        kind, many, align = self._kind, self._many, f"align {self._align}"
        vector, whole = f"<{lanes} x {kind}>", f"<{lanes * many} x {kind}>"
        own = [f"{place}.p{e}" for e in range(many)]
        text = "".join(
            f"  {each} = getelementptr {kind}, ptr %p{1 + e}, i64 {first}\n"
            for e, each in enumerate(own)
        )
        if self._loads:
            text += f"  {place}.v = load {whole}, ptr {place}, {align}\n"
            for e, each in enumerate(own):
                picked = ", ".join(f"i32 {i * many + e}" for i in range(lanes))
                text += f"  {each}.v = shufflevector {whole} {place}.v, {whole} poison, "
                text += (
                    f"<{lanes} x i32> <{picked}>\n  store {vector} {each}.v, ptr {each}, {align}\n"
                )
            return text
        for each in own:
            text += f"  {each}.v = load {vector}, ptr {each}, {align}\n"
        joined, width = [f"{each}.v" for each in own], lanes
        while len(joined) > 1:
            pairs = list(zip(joined[::2], joined[1::2], strict=True))
            listed = ", ".join(f"i32 {i}" for i in range(2 * width))
            joined = [f"{a}.j" for a, _ in pairs]
            for a, b in pairs:
                text += f"  {a}.j = shufflevector <{width} x {kind}> {a}, <{width} x {kind}> {b}, "
                text += f"<{2 * width} x i32> <{listed}>\n"
            width *= 2
        mixed = ", ".join(f"i32 {e * lanes + i}" for i in range(lanes) for e in range(many))
        text += f"  {place}.v = shufflevector {whole} {joined[0]}, {whole} poison, "
        return (
            text + f"<{width} x i32> <{mixed}>\n  store {whole} {place}.v, ptr {place}, {align}\n"
        )

    def halves(self) -> str:
        """Two rows of 16; of loads also two places, each of which 16 lanes read."""
        halves = ", ".join(f"i32 {i // 16 * 16}" for i in range(32))
        steps = ", ".join(f"i64 {i % 16 * self._size}" for i in range(32))
        text = f"""half:
  %half.0 = extractelement <32 x i64> %row.a, i32 0
  %half.1 = extractelement <32 x i64> %row.a, i32 16
  %half.b = shufflevector <32 x i64> %row.a, <32 x i64> poison, <32 x i32> <{halves}>
  %half.w = add <32 x i64> %half.b, <{steps}>
  %half.n = icmp ne <32 x i64> %row.a, %half.w
  %half.i = bitcast <32 x i1> %half.n to i32
  %half.o = or i64 %half.0, %half.1
  %half.l = and i64 %half.o, {self._size - 1}
  %half.y = icmp eq i32 %half.i, 0
  %half.u = icmp eq i64 %half.l, 0
  br i1 %half.u, label %half.kind, label %{self.rest}
half.kind:
  br i1 %half.y, label %half.look, label %{"same" if self._loads else self.rest}
half.look:
{self._looked("half", (0, 15))}half.move:
{self.moved("%half.q0", 16, 0)}{self.moved("%half.q1", 16, 16)}  ret i32 0
"""
        return text + (self._same() if self._loads else "")

    def _same(self) -> str:
        kind, many, align = self._kind, self._many, f"align {self._align}"
        text = f"""same:
  %same.n = icmp ne <32 x i64> %row.a, %half.b
  %same.i = bitcast <32 x i1> %same.n to i32
  %same.y = icmp eq i32 %same.i, 0
  br i1 %same.y, label %same.look, label %{self.rest}
same.look:
{self._looked("same", (0,))}same.move:
"""
        for i, e in ((i, e) for i in range(2) for e in range(many)):
            name = f"%same.{i}.{e}"
            text += f"""  {name}.q = getelementptr {kind}, ptr %same.q{i}, i64 {e}
  {name}.v = load {kind}, ptr {name}.q, {align}
  {name}.s = insertelement <16 x {kind}> poison, {kind} {name}.v, i32 0
  {name}.w = shufflevector <16 x {kind}> {name}.s, <16 x {kind}> poison, \
<16 x i32> zeroinitializer
  {name}.p = getelementptr {kind}, ptr %p{1 + e}, i64 {16 * i}
  store <16 x {kind}> {name}.w, ptr {name}.p, {align}
"""
        return text + "  ret i32 0\n"

    def _looked(self, name: str, lanes: tuple[int, ...]) -> str:
        """To `move` where these lanes of both halves are at good places, else to `lanes`; `q0` and
        `q1` are pointers to the first."""
        text, good = "", []
        for i in range(2):
            address = f"%half.{i}"
            if self._shared:
                text += _in_window_at(f"{name}{i}", address, (lanes[-1] + 1) * self._size)
                good.append(f"%{name}{i}.f")
                text += f"  %{name}{i}.r = add i64 {address}, %base\n"
                address = f"%{name}{i}.r"
            elif self._checked:
                for lane in lanes:
                    here = f"{name}{i}.{lane}"
                    text += _alive_at(here, address, lane * self._size, self._size)
                    good.append(f"%{here}.f")
            text += f"  %{name}.q{i} = inttoptr i64 {address} to ptr\n"
        if not good:
            return text + f"  br label %{name}.move\n"
        for i, each in enumerate(good[1:]):
            last = f"%{name}.and{i - 1}" if i else good[0]
            text += f"  %{name}.and{i} = and i1 {last}, {each}\n"
        return text + f"  br i1 %{name}.and{len(good) - 2}, label %{name}.move, label %lanes\n"

    def each(self) -> str:
        """32 places that are seen to be good all at once: all bits that any has are."""
        if self.rest != "each":
            return ""
        look, real = "  br label %each.loop\n", "  %each.r = add i64 %each.a, 0\n"
        if self._shared:
            look = f"""  %each.or = call i64 @llvm.vector.reduce.or.v32i64(<32 x i64> %row.a)
  %each.l = and i64 %each.or, {self._size - 1}
  %each.e = add i64 %each.or, {self._size}
  %each.0 = icmp ule i64 %each.e, %limit
  %each.1 = icmp ult i64 %each.or, %limit
  %each.2 = icmp eq i64 %each.l, 0
  %each.3 = and i1 %each.0, %each.1
  %each.4 = and i1 %each.2, %each.3
  br i1 %each.4, label %each.loop, label %lanes
"""
            real = "  %each.r = add i64 %each.a, %base\n"
        return f"""each:
{look}each.loop:
  %n = phi i64 [0, %each], [%n1, %each.loop]
  %each.p = getelementptr i64, ptr %p0, i64 %n
  %each.a = load i64, ptr %each.p
{real}  %each.q = inttoptr i64 %each.r to ptr
{"".join(self._one(e) for e in range(self._many))}  %n1 = add i64 %n, 1
  %each.c = icmp eq i64 %n1, 32
  br i1 %each.c, label %each.done, label %each.loop
each.done:
  ret i32 0
"""

    def _one(self, e: int) -> str:
        kind, align = self._kind, f"align {self._align}"
        given, taken = f"%each.m{e}", f"%each.o{e}"
        if not self._loads:
            given, taken = taken, given
        return f"""  %each.m{e} = getelementptr {kind}, ptr %each.q, i64 {e}
  %each.o{e} = getelementptr {kind}, ptr %p{1 + e}, i64 %n
  %each.v{e} = load {kind}, ptr {given}, {align}
  store {kind} %each.v{e}, ptr {taken}, {align}
"""


_ROW_ANY: Final = """row.look:
  %row.q = inttoptr i64 %row.0 to ptr
  br label %row.move
"""


def _in_window_at(name: str, address: str, size: int) -> str:
    """`NAME.f`: whether so many bytes are in the block's window."""
    return f"""  %{name}.e = add i64 {address}, {size}
  %{name}.f0 = icmp ule i64 %{name}.e, %limit
  %{name}.f1 = icmp ult i64 {address}, %limit
  %{name}.f = and i1 %{name}.f0, %{name}.f1
"""


def _alive_at(name: str, address: str, offset: int, size: int) -> str:
    """`NAME.f`: whether an element behind an address is in memory that is alive; one outside of
    the arena is looked up at its start, where nothing is."""
    return f"""  %{name}.a = sub i64 {address}, %arena
  %{name}.o = add i64 %{name}.a, {offset}
  %{name}.m = add i64 %{name}.o, {size}
  %{name}.f0 = icmp ule i64 %{name}.m, %limit
  %{name}.f1 = icmp ult i64 %{name}.o, %limit
  %{name}.in = and i1 %{name}.f0, %{name}.f1
  %{name}.at = select i1 %{name}.in, i64 %{name}.o, i64 0
  %{name}.g = lshr i64 %{name}.at, 8
  %{name}.p = getelementptr i16, ptr %shadow, i64 %{name}.g
  %{name}.v = load i16, ptr %{name}.p
  %{name}.l = zext i16 %{name}.v to i64
  %{name}.w = and i64 %{name}.at, 255
  %{name}.z = add i64 %{name}.w, {size}
  %{name}.f2 = icmp ule i64 %{name}.z, %{name}.l
  %{name}.f = and i1 %{name}.in, %{name}.f2
"""


def _row_shared(size: int) -> str:
    return f"""row.look:
{_in_window_at("row", "%row.0", size * 32)}  %row.r = add i64 %row.0, %base
  %row.q = inttoptr i64 %row.r to ptr
  br i1 %row.f, label %row.move, label %lanes
"""


def _row_plain(size: int) -> str:
    parts = "".join(
        _alive_at(name, "%row.0", lane * size, size)
        for name, lane in (("f", 0), ("g", 16), ("h", 31))
    )
    return f"""row.look:
{parts}  %fg = and i1 %f.f, %g.f
  %fgh = and i1 %fg, %h.f
  %row.q = inttoptr i64 %row.0 to ptr
  br i1 %fgh, label %row.move, label %lanes
"""


# ---- lane by lane ----


@helper("divide")
def _divide(name: str, what: str, kind: str) -> str:
    """`divide:div:s32`: the quotient or remainder; all ones where the divisor is 0."""
    word = f"i{kind[1:]}"
    signed = kind[0] == "s"
    op = ("s" if signed else "u") + what
    body = lane_value("%p0", word, "a") + lane_value("%p1", word, "b")
    body += f"  %zero = icmp eq {word} %b, 0\n"
    if signed:
        # The smallest number by -1 is undefined in LLVM; by 1 after a negation it wraps, as here.
        negated = "%n" if what == "div" else "0"
        body += f"""  %minus = icmp eq {word} %b, -1
  %n = sub {word} 0, %a
  %either = or i1 %zero, %minus
  %d = select i1 %either, {word} 1, {word} %b
  %q0 = {op} {word} %a, %d
  %q1 = select i1 %minus, {word} {negated}, {word} %q0
"""
    else:
        body += f"  %d = select i1 %zero, {word} 1, {word} %b\n  %q1 = {op} {word} %a, %d\n"
    body += f"  %q2 = select i1 %zero, {word} -1, {word} %q1\n" + put("%p2", word, "%q2")
    return by_lane(name, 3, "", body + "  br label %next\n")


DECLARED: Final = """declare i32 @llvm.cttz.i32(i32, i1)
declare i32 @llvm.ctpop.i32(i32)
"""
