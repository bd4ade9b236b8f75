"""A bound call: a function with its arguments, which are converted and packed once.

`Function.bind` returns a built-in function without parameters. It calls the wrapper with the packed
arguments, so each call runs only the wrapper's checks and the body. Its `self` is a tuple. The
first item, bytes, is the struct `BOUND` that the code reads; the other items keep the memory alive
that the struct points to.

The storage of a torch tensor owns its memory, and the memory stays in place unless somebody resizes
or moves the storage. Two words of each storage reveal this; the code compares them before the call.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final, NoReturn, TypeAlias

import tvm_ffi
from llvmlite import ir

from ferrule import specs
from ferrule.runtime.abi import SYMBOL_PREFIX, DeviceType
from ferrule.runtime.calls.plan import CallPlan
from ferrule.runtime.entry.invoke import Invocation
from ferrule.runtime.entry.python import items_of, python
from ferrule.runtime.entry.structs import NO_DEVICE, STATE
from ferrule.runtime.entry.tensors import count_version
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import I8, I32, I64, OBJECT, PTR, SEQ, Field, Layout
from ferrule.runtime.values.storages import StorageWords, storage_words
from ferrule.runtime.values.versions import version_words
from ferrule.specs.deferred import dataclass

BOUND_NAME: Final = "bound"

BOUND: Final = Layout(
    "BoundCall",
    [
        Field("code", PTR),
        Field("packed", PTR),
        Field("count", I32),
        Field("releases_gil", I32),
        Field("framework", PTR),  # an argument whose framework has an exchange API, or null
        Field("device", I64),  # of its first tensor that is not on the CPU, or `NO_DEVICE`
        Field("form", PTR),  # of the result, or null
        Field("guarded", I64),  # how many of `GUARD` there are
        Field("guards", PTR),
        Field("refuse", PTR),  # a callable of Python that raises where one of them has changed
        Field("written", I64),  # how many torch tensors are written
        Field("counters", PTR),  # for each, where the address of its version is
        Field("number", I64),  # the offset in a version
    ],
)

GUARD: Final = Layout(
    "StorageGuard",
    [Field("data_at", PTR), Field("data", I64), Field("size_at", PTR), Field("size", I64)],
)
"""Two addresses, and the words that must still be there."""

_FORMATS: Final = {PTR: "Q", I32: "i", I64: "q"}
_PACKED: Final = struct.Struct("@" + "".join(_FORMATS[BOUND.type_of(each)] for each in BOUND.names))

_WORK_STREAM: Final = ir.FunctionType(I32, [I32, I32, PTR])
_NO_ARGUMENTS: Final = 4  # METH_NOARGS


def bound_text(triple: str, *, torch: bool, unpacks: bool) -> str:
    """The code of a bound call, `ptr (self, nothing)`, as LLVM IR."""
    e = Emitter("ferrule.bound", triple)
    names = ("self", "nothing")
    with e.define(SYMBOL_PREFIX + BOUND_NAME, PTR, [PTR, PTR], names=names) as function:
        block = e.load(items_of(e, function.args[0]), PTR)
        # A bytes object ends with `char ob_sval[1]` (bytesobject.h), where its bytes begin.
        bound = e.index(block, I8, bytes.__basicsize__ - 1)
        if torch:
            _check_storages(e, bound)
            _count_versions(e, bound)
        state = e.alloca(STATE, name="state")
        for name in ("framework", "device"):
            e.store_field(state, STATE, name, e.load_field(bound, BOUND, name))
        if torch:
            _take_stream(e, state)
        made = Invocation(e, torch, torch, state)
        result, values = made.new_result(), ("code", "releases_gil", "packed", "count")
        code, releases, packed, count = (e.load_field(bound, BOUND, name) for name in values)
        form = e.load_field(bound, BOUND, "form") if unpacks else None
        made.finish(made.call(code, releases, packed, count, result), result, form)
    return e.text()


def _check_storages(e: Emitter, bound: ir.Value) -> None:
    """Raise if a storage of an argument was resized or moved after `bind`."""
    guards = e.load_field(bound, BOUND, "guards")
    with e.loop(e.load_field(bound, BOUND, "guarded")) as i:
        guard = e.index(guards, I8, e.builder.mul(i, e.const_i64(GUARD.size)))
        changed = [
            e.icmp(
                "ne",
                e.load(e.load_field(guard, GUARD, f"{word}_at"), I64),
                e.load_field(guard, GUARD, word),
            )
            for word in ("data", "size")
        ]
        with e.if_then(e.builder.or_(*changed), likely=False):
            refuse = e.load_field(bound, BOUND, "refuse")
            e.ret(python(e, "PyObject_CallFunctionObjArgs", refuse, e.null()))


def _count_versions(e: Emitter, bound: ir.Value) -> None:
    """Count the versions of the torch tensors that the call may write."""
    counters, number = (e.load_field(bound, BOUND, name) for name in ("counters", "number"))
    with e.loop(e.load_field(bound, BOUND, "written")) as i:
        count_version(e, e.load(e.index(counters, PTR, i), PTR), number)


def _take_stream(e: Emitter, state: ir.Value) -> None:
    """The framework's current stream on the arguments' device."""
    device, b = e.load_field(state, STATE, "device"), e.builder
    with e.if_then(e.icmp("ne", device, e.const_i64(NO_DEVICE)), likely=False):
        kind, index = b.trunc(device, I32), b.trunc(b.lshr(device, e.const_i64(32)), I32)
        ask = e.symbol("torch_work_stream", _WORK_STREAM)
        place = e.field_ptr(state, STATE, "stream")
        failed = e.icmp("ne", e.call(ask, [kind, index, place]), e.const_i32(0))
        with e.if_then(failed, likely=False):
            python(e, "PyErr_Clear")
            e.store(e.null(), place)


class _MethodDef(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("code", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


# PYFUNCTYPE, because PyCFunction_NewEx needs the GIL.
_new_function: Final = ctypes.PYFUNCTYPE(
    ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p
)(("PyCFunction_NewEx", ctypes.pythonapi))


class Binder:
    """Makes bound calls; `address` is their code, which `owner` keeps alive."""

    __slots__ = ("_definition", "_owner")

    def __init__(self, address: int, owner: object) -> None:
        doc = b"A function with its arguments, which calls it with these."
        self._owner = owner
        self._definition = _MethodDef(b"bound_call", address, _NO_ARGUMENTS, doc)

    def bind(
        self,
        function: Any,
        plan: CallPlan,
        arguments: Sequence[Any],
        signature: specs.Signature,
        storages: Sequence[Sequence[Any]],
        written: Sequence[Any] = (),
    ) -> Any:
        """A bound call of `function`, which has this plan; the arguments are already converted.

        `signature` is the signature of the call, `storages` the torch storages in each argument,
        `written` the torch tensors that the function may write, whose versions are known.
        """
        make_array = tvm_ffi.get_global_func("ffi.Array")
        packed, holder = make_array(*arguments), make_array(function)
        framework, device = _framework_of(arguments)
        data = packed.__chandle__() + OBJECT.size + SEQ.offset("data")
        guards, form = _Guards.make(signature, storages), plan.form
        counters = _words(_counters(written))
        version = version_words()
        block = _struct(
            code=plan.code,
            packed=ctypes.c_uint64.from_address(data).value,
            count=len(arguments),
            releases_gil=int(function.release_gil),
            framework=0 if framework is None else id(framework),
            device=device,
            form=0 if form is None else id(form),
            guarded=len(guards.words) // (GUARD.size // 8),
            guards=ctypes.addressof(guards.words),
            refuse=id(guards.refuse),
            written=len(written),
            counters=ctypes.addressof(counters),
            number=0 if version is None else version.number,
        )
        kept = (block, packed, framework, holder, form, self, guards, counters, *written)
        return _new_function(ctypes.addressof(self._definition), kept, None)


def _counters(written: Sequence[Any]) -> Iterator[int]:
    """Where the address of each tensor's version is."""
    version = version_words()
    for tensor in written:
        assert version is not None
        yield tensor._cdata + version.counter


def _words(values: Iterable[int]) -> ctypes.Array[ctypes.c_uint64]:
    listed = list(values)
    return (ctypes.c_uint64 * len(listed))(*listed)


@dataclass(frozen=True, slots=True)
class _Guards:
    """The `GUARD` of each storage in C memory, and a function that raises if one has changed."""

    words: ctypes.Array[ctypes.c_uint64]
    refuse: Callable[[], NoReturn]
    storages: Sequence[Sequence[Any]]

    @classmethod
    def make(cls, signature: specs.Signature, storages: Sequence[Sequence[Any]]) -> _Guards:
        """Guards for the storages in each argument; none if the layout of storages is unknown."""
        where = storage_words()
        known = [] if where is None else list(_watched(where, storages))
        words = [word for _, guard in known for word in guard]
        refuse = partial(_refuse_moved, signature, known)
        return cls(_words(words), refuse, storages)


_Guard: TypeAlias = "tuple[int, int, int, int]"


def _watched(
    where: StorageWords, storages: Sequence[Sequence[Any]]
) -> Iterator[tuple[int, _Guard]]:
    """For each storage, the position of its argument and the words to compare."""
    for argument, held in enumerate(storages):
        for storage in held:
            yield argument, where.of(storage)


def _refuse_moved(signature: specs.Signature, known: Sequence[tuple[int, _Guard]]) -> NoReturn:
    """Raise RuntimeError that names the first argument with changed memory."""
    moved = (
        argument
        for argument, (data_at, data, size_at, size) in known
        if (_word(data_at), _word(size_at)) != (data, size)
    )
    argument = next(moved, known[0][0])  # another thread may have given it back meanwhile
    name = signature.arguments[argument].name
    raise RuntimeError(
        f"Mismatched {name} on argument #{argument} when calling: `{signature}`, expected the "
        f"memory that it had when it was bound, but got a tensor of torch whose storage was "
        f"resized or moved since: bind the call again"
    )


def _word(address: int) -> int:
    return ctypes.c_uint64.from_address(address).value


def _struct(**values: int) -> bytes:
    return _PACKED.pack(*(values[name] for name in BOUND.names))


def _framework_of(arguments: Sequence[Any]) -> tuple[Any, int]:
    """A torch tensor of the arguments, or None, and the device of the first one not on the CPU."""
    found = list(_torch_tensors(arguments))
    for tensor in found:
        kind, index = tensor.__dlpack_device__()
        if int(kind) != DeviceType.CPU:
            return tensor, int(kind) | int(index) << 32
    return (found[-1] if found else None), NO_DEVICE


def _torch_tensors(values: Sequence[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, (tuple, list)):
            yield from _torch_tensors(value)
        elif hasattr(type(value), "__dlpack_c_exchange_api__"):
            yield value
