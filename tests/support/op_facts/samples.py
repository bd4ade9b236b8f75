"""A small program for each op: what it is given, and enough of it to see every effect once.

A sample is a region of ops, run by the reference interpreter in one thread or several of a block,
or as host code.  Samples of a class with the same `variant` have the same facts, if a property of
the class says them by its fields.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import numpy as np
from interpreter import Memory, declared
from interpreter.foreign import Object
from interpreter.stops import Stopped

from ferrule.compiler.artefacts import Fault, Location, Part
from ferrule.compiler.cuda.tilings import DataType, Tiling
from ferrule.language.faces.tensor_cores import SharedMatrix
from ferrule.language.ir import ops
from ferrule.language.ir.types import HandleType, TensorType
from ferrule.runtime.entry.key import CallTraits
from ferrule.specs import (
    AddressSpace,
    Boolean,
    DType,
    Float8E4M3FN,
    Float8E5M2,
    Float16,
    Float32,
    Int32,
    Int64,
    Sym,
    Uint32,
    params,
    sym_int,
)

Given: TypeAlias = Mapping[ops.Value, Any]

HOST: Final = 0
"""The number of threads of host code."""
LANES: Final = 0xFFFFFFFF
_FAULT: Final = Fault("ValueError", "too large")
_PLACE: Final = Location("here.py", "f", 3)


@dataclass(frozen=True)
class Sample:
    """Ops that run, with what they are given in the thread of this number."""

    ops: tuple[ops.Op, ...]
    given: Callable[[int], Given]
    variant: str = ""
    threads: int = 1
    kernels: tuple[ops.Function, ...] = ()
    symbols: Mapping[Sym, int] = field(default_factory=dict)
    made: frozenset[Sym] = frozenset()
    functions: Mapping[str, Callable[..., Any]] = field(default_factory=dict)


def number(dtype: DType = Int32, hint: str = "x") -> ops.Value:
    """A value of this dtype."""
    return ops.Value(dtype, hint)


def tensor(
    dtype: DType, count: int, space: AddressSpace = AddressSpace.gmem, hint: str = "t"
) -> ops.Value:
    """A value that is a compact tensor of one dim."""
    return ops.Value(TensorType(dtype, (count,), (1,), 16, space), hint)


def handle(what: str) -> ops.Value:
    """A value that is a handle."""
    return ops.Value(HandleType(what), "h")


def memory(of: ops.Value) -> Memory:
    """Zeros for a tensor."""
    (count,) = of.tensor.shape
    assert isinstance(count, int)
    size = count * of.tensor.dtype.itemsize
    return Memory(np.zeros(size, np.uint8), 0, np.ones(size, np.bool_))


def _alone(op: ops.Op, given: Given, **more: Any) -> Sample:
    """One op, given the same in every thread."""
    return Sample((op,), lambda _: given, **more)


def _room(*tensors: ops.Value) -> dict[ops.Value, Any]:
    return {each: memory(each) for each in tensors}


def samples() -> Iterator[Sample]:
    """All of them."""
    for group in (
        _numbers,
        _memory,
        _regions,
        _host,
        _objects,
        _calls,
        _block,
        _lanes,
        _copies,
        _barriers,
        _matrices,
        _maps,
    ):
        yield from group()


# ---- numbers ----


def _numbers() -> Iterator[Sample]:
    x, y, z = number(), number(), number()
    f, g, h = (number(Float32) for _ in "fgh")
    size = sym_int(symbol="n")
    yield _alone(ops.Constant(number(), 3), {})
    yield _alone(ops.Size(number(), size), {}, symbols={size: 3})
    far = ops.Size(number(), size, _FAULT)
    yield _alone(far, {}, variant="may fail", symbols={size: 1 << 40}, threads=HOST)
    yield _alone(ops.Special(number(), "block_idx", 0), {}, threads=2)
    yield _alone(ops.Special(number(), "thread_idx", 0), {}, variant="thread", threads=2)
    yield _alone(ops.Unary(number(), "neg", x), {x: 3})
    yield _alone(ops.Unary(number(Float32), "sqrt", f, True, ("nnan",)), {f: 3.0})
    yield _alone(ops.Binary(number(), "floordiv", x, y), {x: 3, y: 0})
    yield _alone(ops.Binary(number(Float32), "add", f, g, True, ("nnan",)), {f: 3.0, g: 4.0})
    yield _alone(ops.Fma(number(Float32), f, g, h), {f: 3.0, g: 4.0, h: 5.0})
    yield _alone(ops.Compare(number(Boolean), "lt", x, y), {x: 3, y: 4})
    yield _alone(ops.Cast(number(Int32), f), {f: float("nan")})
    yield _alone(ops.Cast(number(Float8E4M3FN), x, saturate=True), {x: 3})
    yield _alone(ops.Bitcast(number(Int32), f), {f: 3.0})
    condition = number(Boolean)
    yield _alone(ops.Select(number(), condition, y, z), {condition: True, y: 3, z: 4})


# ---- memory ----


def _memory() -> Iterator[Sample]:
    t, x, y = tensor(Int32, 4), number(), number()
    room = _room(t)
    yield _alone(ops.Load(number(), t, (x,)), {**room, x: 2})
    yield _alone(ops.Store(t, (x,), y), {**room, x: 2, y: 7})
    yield _alone(ops.View(tensor(Int32, 2), t, (x,)), {**room, x: 2})
    yield _alone(ops.View(tensor(Int32, 4), t, whole=True), room)
    address = number(Int64)
    yield _alone(ops.Pointer(tensor(Int32, 4), address), {address: room[t]})
    yield _alone(ops.Address(number(Int64), t), room)
    yield _alone(ops.Fragment(tensor(Int32, 4, AddressSpace.rmem)), {}, threads=2)
    yield _alone(ops.Table(tensor(Int32, 1), b"\1\0\0\0"), {})
    shared = tensor(Int32, 4, AddressSpace.smem)
    yield _alone(ops.Shared(shared, lasts=True, extra=True), {}, threads=2)
    yield _alone(ops.DynamicShared(shared, 16), {}, threads=2)
    yield _alone(
        ops.Atomic(number(), "add", t, (x,), y, None, "acquire", "sys", _PLACE),
        {**room, x: 2, y: 1},
        threads=2,
    )
    z = number()
    yield _alone(ops.Atomic(number(), "cas", t, (x,), y, z), {**room, x: 2, y: 1, z: 0}, threads=2)


# ---- regions ----


def _regions() -> Iterator[Sample]:
    condition, x, y, z = number(Boolean), number(), number(), number()
    then, otherwise = ops.Region((), (x,)), ops.Region((), (y,))
    branch = ops.If((number(),), condition, then, otherwise, rare=True)
    yield _alone(branch, {condition: True, x: 3, y: 4})
    index, carried = number(), number()
    total = number()
    body = ops.Region((ops.Binary(total, "add", carried, index),), (total,))
    loop = ops.For((number(),), index, x, y, z, (x,), (carried,), body, ops.LoopHints(unroll=2))
    yield _alone(loop, {x: 0, y: 3, z: 1})
    carried, more, next_ = number(), number(Boolean), number()
    test = ops.Region((ops.Compare(more, "lt", carried, y),), (more,))
    body = ops.Region((ops.Binary(next_, "add", carried, z),), (next_,))
    yield _alone(ops.While((number(),), (x,), (carried,), test, body), {x: 0, y: 3, z: 1})
    at, count, t = number(Int64), number(Int64), tensor(Int32, 4)
    body = ops.Region((ops.Store(t, (at,), x),))
    each = ops.Parallel((at,), (count,), body, _PLACE)
    yield _alone(each, {count: 4, x: 5, **_room(t)}, threads=HOST)


# ---- host functions ----


def _host() -> Iterator[Sample]:
    x, size, made = number(Int64), sym_int(symbol="n"), sym_int(symbol="m")
    known: dict[str, Any] = {"threads": HOST, "made": frozenset((made,))}
    new = ops.Value(TensorType(Int32, (made, 2), (2, 1), 16), "new")
    two = number(Int64)
    yield _alone(ops.Alloc(new, (x, two), _PLACE), {x: 3, two: 2}, **known)
    t, less = tensor(Int32, 4), ops.Value(TensorType(Int32, (made,), (1,), 16), "less")
    yield _alone(ops.Shrink(less, t, x, _PLACE), {**_room(t), x: 2}, **known)
    yield _alone(ops.Define(made, x), {x: 3}, **known)
    yield _alone(ops.Text(handle("bytes"), b"text"), {}, threads=HOST)
    yield _alone(ops.CallDevice(number(Int64)), {}, threads=HOST)
    yield _alone(ops.Return((x,)), {x: 3}, threads=HOST)
    false = number(Boolean)
    check = ops.Check(false, Fault("ValueError", "{} is too large"), (x,), inserted=True)
    yield _alone(check, {false: False, x: 3})
    yield _alone(ops.Print("%lld\n", (x,), _PLACE), {x: 3})
    yield from _launches(size)


def _launches(size: Sym) -> Iterator[Sample]:
    a, b, zero, false = tensor(Int32, 4), tensor(Int32, 4), number(), number(Boolean)
    loaded, wide = number(), number(Int64)
    body = ops.Region(
        (
            ops.Constant(zero, 0),
            ops.Load(loaded, a, (zero,)),
            ops.Store(a, (zero,), loaded),
            ops.Store(b, (zero,), loaded),
            ops.Cast(wide, loaded),
            ops.Print("%lld", (wide,)),
            ops.Constant(false, False),
            ops.Check(false, _FAULT),
        )
    )
    kernel = ops.Function("k", "kernel", (a, b), body)
    one, none = number(Int64), number(Int64)
    c, d, stream, priority = tensor(Int32, 4), tensor(Int32, 4), handle("stream"), number()
    events = handle("pointer"), handle("pointer")
    launch = ops.Launch(
        "k",
        (one, one, one),
        (one, one, one),
        (c, d),
        stream,
        none,
        _PLACE,
        (one, one, one),
        priority,
        *events,
        ops.LaunchOptions(True, True, 50, 1, 1, True, (32, 4, 1), 2),
    )
    given = {one: 1, none: 0, stream: None, priority: 0, **dict.fromkeys(events), **_room(c, d)}
    yield _alone(launch, given, threads=HOST, kernels=(kernel,))


def _objects() -> Iterator[Sample]:
    x, some, thing = number(Int64), handle("any"), handle("object")
    found: dict[ops.Value, Any] = {some: [5, 6], thing: Object("my.Type", {"width": 7}), x: 1}
    yield _alone(ops.Item(handle("any"), some, x), {some: found[some], x: 1}, threads=HOST)
    field_ = ops.Field(handle("any"), thing, "my.Type", "width", _PLACE)
    yield _alone(field_, {thing: found[thing]}, threads=HOST)
    yield _alone(ops.Peek(number(Int64), some, "size"), {some: found[some]}, threads=HOST)
    test = ops.IsInstance(number(Boolean), thing, "my.Type")
    yield _alone(test, {thing: found[thing]}, threads=HOST)


# ---- calls ----


def _everything(a: Memory, b: Memory) -> list[Any]:
    """A function that does all that one may: the effects are those of the op that calls it."""
    for each in (a, b):
        each.write(Int32, 0, each.read(Int32, 0))
    declared.seen("shows")
    return _first(a, b)


def _first(a: Memory, b: Memory) -> list[Any]:
    """A function that writes only to its first tensor, and returns one."""
    a.write(Int32, 0, b.read(Int32, 0))
    declared.seen("shows")
    return [_Sized(np.zeros(8, np.uint8)), 3]


class _Sized(Memory):
    """Memory of a tensor that somebody returns."""

    @property
    def sizes(self) -> tuple[int, ...]:
        return (2,)


def _failing(*_: Any) -> Any:
    raise Stopped(_FAULT)


def _calls() -> Iterator[Sample]:
    a, b, made = tensor(Int32, 4), tensor(Int32, 4), sym_int(symbol="m")
    functions = {"everything": _everything, "failing": _failing, "first": _first}
    known: dict[str, Any] = {"threads": HOST, "functions": functions, "made": frozenset((made,))}
    for name in ("everything", "failing"):
        call = ops.Call(handle("any"), name, ("tensor", "tensor"), (a, b), "any", _PLACE)
        yield _alone(call, _room(a, b), **known)
    function = handle("object")
    call = ops.Call(number(Int64), function, (), (), "nothing")
    yield _alone(call, {function: lambda: 0}, variant="nothing", **known)
    result = params.Tuple("r", (params.Tensor("t", (made,), "int32"), params.Scalar("s", "int64")))
    for name in ("first", "failing"):
        linked = ops.Linked(
            name,
            Part(name, name, ""),
            Part(name, name, ""),
            (),
            result,
            False,
            1,
            CallTraits(),
            written=frozenset((0,)),
        )
        body = ops.CallBody(handle("results"), linked, (a, b), ((made, 0, 0),), _PLACE)
        yield _alone(body, _room(a, b), **known)
    value = handle("any")
    for found in ([3, 4], "something else"):
        received = ops.Receive(handle("leaves"), value, result, "f()", ((made, 0),), _PLACE)
        yield _alone(received, {value: found}, **known)
    parts, owner = handle("leaves"), handle("any")
    part = ops.Received(number(Int64), parts, 1, owner, (0,))
    yield _alone(part, {parts: [3, 4], owner: None}, **known)


# ---- threads ----


def _block() -> Iterator[Sample]:
    two, many = number(), number()
    yield _alone(ops.Barrier(location=_PLACE), {}, threads=128)
    barrier = ops.Barrier(two, many, _PLACE)
    yield _alone(barrier, {two: 2, many: 64}, variant="some", threads=128)
    yield _alone(ops.BarrierArrive(two, many, _PLACE), {two: 2, many: 64}, threads=64)
    yield _alone(ops.Fence("system"), {})
    s, x, peer = tensor(Int32, 4, AddressSpace.smem), number(), number()
    yield _alone(ops.PeerLoad(number(), s, peer), {**_room(s), peer: 0})
    yield _alone(ops.PeerStore(s, x, peer), {**_room(s), x: 3, peer: 0})


_PTX: Final = (
    "ld.global.s32 $0, [$1]",
    "st.global.s32 [$1], $2",
    "bar.warp.sync -1",
    "membar.gl",
    "griddepcontrol.launch_dependents",
)


def _lanes() -> Iterator[Sample]:
    mask, x, by, clamp = number(Uint32), number(), number(), number()
    yield _alone(ops.WarpBarrier(mask, _PLACE), {mask: LANES}, threads=128)
    shuffle = ops.Shuffle(number(), "bfly", x, by, mask, clamp, _PLACE)
    yield Sample((shuffle,), lambda n: {mask: LANES, x: n, by: 1, clamp: 31}, threads=128)
    holds = number(Boolean)
    vote = ops.Vote(number(Uint32), "ballot", holds, mask, _PLACE)
    yield Sample((vote,), lambda n: {mask: LANES, holds: n < 40}, threads=128)
    match = ops.Match(number(Uint32), "any", x, mask, _PLACE)
    yield Sample((match,), lambda n: {mask: LANES, x: n % 2}, threads=128)
    t = tensor(Int32, 4)
    address = number(Int64)
    room = memory(t)
    for text in _PTX:
        ptx = ops.InlinePtx(number(), f"{text};", "=r,l,r", (address, x), _PLACE)
        yield _alone(ptx, {address: room, x: 3}, threads=128)


# ---- copies ----


def _copies() -> Iterator[Sample]:
    s, t, holds = tensor(Int32, 8, AddressSpace.smem), tensor(Int32, 8), number(Boolean)
    copy = ops.AsyncCopy(s, t, 4, "global", holds)
    after = (ops.Control("cp_async_commit_group"), ops.Control("cp_async_wait_group", 0))
    yield Sample((copy, *after), lambda _: {holds: True, **_room(s, t)})
    yield _alone(ops.Control("cluster_wait"), {}, variant="waits", threads=128)
    size = number()
    yield _alone(ops.BulkStore(t, s, size), {**_room(s, t), size: 16})


def _barriers() -> Iterator[Sample]:
    b, one, zero, peer = tensor(Int64, 1, AddressSpace.smem), number(), number(), number()
    begin = ops.MBarrier("init", b, one)
    room = _room(b)
    known = {**room, one: 1, zero: 0, peer: 0}
    yield _alone(begin, {**room, one: 1})
    arrive = ops.MBarrier("arrive", b, None, peer)
    yield Sample((begin, arrive), lambda _: {**room, one: 1, peer: 0})
    later = ops.MBarrier("copies_arrive", b)
    yield Sample((begin, later), lambda _: {**room, one: 1})
    open_ = {**room, one: 1, zero: 0}
    yield Sample((begin, ops.MBarrierWait(b, zero, _PLACE)), lambda _: open_, threads=128)
    ended = (begin, ops.MBarrier("arrive", b, None, peer))
    wait = ops.MBarrierWait(b, zero, _PLACE)
    yield Sample((*ended, wait), lambda _: known)
    again = ops.MBarrierTry(number(Boolean), b, zero, _PLACE)
    yield Sample((*ended, again), lambda _: known)
    s, t, size = tensor(Int32, 4, AddressSpace.smem), tensor(Int32, 4), number()
    copy = ops.BulkCopy(s, t, size, b)
    yield Sample((begin, copy), lambda _: {**_room(s, t, b), one: 1, size: 16})


# ---- matrices ----


def _matrices() -> Iterator[Sample]:
    mask, rmem, smem = number(Uint32), AddressSpace.rmem, AddressSpace.smem
    d, c = tensor(Float32, 4, rmem), tensor(Float32, 4, rmem)
    a, b = tensor(Float16, 8, rmem), tensor(Float16, 4, rmem)
    mma = ops.Mma(d, a, b, c, mask, _PLACE)
    yield Sample((mma,), lambda _: {**_room(a, b, c, d), mask: LANES}, threads=128)
    e, f = tensor(Float8E4M3FN, 8, rmem), tensor(Float8E5M2, 4, rmem)
    mma = ops.Mma(d, e, f, c, mask, _PLACE)
    known = {**_room(e, f, c, d), mask: LANES}
    yield Sample((mma,), lambda _: known, threads=128, variant="narrow")
    words, rows = tensor(Float16, 2, rmem), tensor(Float16, 64, smem)
    for of, to, kind in ((rows, words, ops.LoadMatrix), (words, rows, ops.StoreMatrix)):
        move = kind(to, of, True, mask, _PLACE)
        yield Sample((move,), lambda _: {**_room(rows, words), mask: LANES}, threads=128)
    yield from _warpgroups()


def _warpgroups() -> Iterator[Sample]:
    rmem, smem = AddressSpace.rmem, AddressSpace.smem
    d, accumulate = tensor(Float32, 4, rmem), number(Boolean)
    a, b = tensor(Float16, 4096, smem), tensor(Float16, 4096, smem)
    layout = SharedMatrix("k", 0, 128, 256)
    mma = ops.WarpgroupMma(d, a, b, accumulate, layout, layout, _PLACE)
    yield Sample((mma,), lambda _: {**_room(a, b, d), accumulate: True}, threads=128)
    inside = tensor(Float16, 8, rmem)
    mma = ops.WarpgroupMma(d, inside, b, accumulate, None, layout)
    yield Sample((mma,), lambda _: {**_room(inside, b, d), accumulate: True}, threads=128)


def _maps() -> Iterator[Sample]:
    t, s = tensor(Float32, 8), tensor(Float32, 4, AddressSpace.smem)
    b, x, one, mask = tensor(Int64, 1, AddressSpace.smem), number(), number(), number()
    place, map_ = tensor(Int64, 16), tensor(Int64, 16, AddressSpace.smem)
    boxes = ops.Boxes(Tiling(DataType.FLOAT32, (4,)), (0,))
    begin = ops.MBarrier("init", b, one)
    load = ops.TensorCopy("load", t, boxes, (x,), s, b, mask, place)
    room = _room(t, s, b, place)
    yield Sample((begin, load), lambda _: {**room, one: 1, x: 0, mask: 1}, variant="load")
    store = ops.TensorCopy("store", t, boxes, (x,), s)
    yield _alone(store, {**_room(t, s), x: 0}, variant="store")
    elsewhere = ops.TensorCopy("store", t, boxes, (x,), s, None, None, place)
    yield _alone(elsewhere, {**_room(t, s, place), x: 0}, variant="store to a map")
    ahead = ops.TensorCopy("prefetch", t, boxes, (x,))
    yield _alone(ahead, {**_room(t), x: 0}, variant="prefetch")
    lane = number()
    yield _alone(ops.MapCopy(place, t, boxes, lane), {**_room(t, place), lane: 1})
    wide = number(Int64)
    yield _alone(ops.MapEdit("stride", place, wide, 1), {**_room(place), wide: 64})
    yield _alone(ops.MapEdit("publish", place, map_), _room(place, map_))
    yield _alone(ops.MapEdit("acquire", place), _room(place))
