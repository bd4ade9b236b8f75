"""The gate: machine code for calls that the direct entry cannot make.

The process has two gates, driven by the call plan of the instance: one for functions that return
tuples, which converts Arrays to tuples, and one for all others. If a call has no keywords, the
right number of arguments, and only argument types that the parameters take unconverted, the gate
makes tvm-ffi's generic call, and no Python code runs. Otherwise it hands all values to the slow
path, before any other code has run, and makes the call with the values that the slow path returns.
It never repeats a refused call.

The gate references Python's C API. It is never exported.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from llvmlite import ir

from ferrule import specs
from ferrule.runtime.calls import results
from ferrule.runtime.calls.heaptype import HeapType
from ferrule.runtime.calls.plan import CallPlan
from ferrule.runtime.calls.tuples import (
    ARRAY_TYPE,
    ITEM,
    PYTHON,
    TUPLE_TYPE,
    UNPACK,
    define_unpack,
)
from ferrule.runtime.entry.entries import Entries
from ferrule.runtime.entry.python import (
    GENERIC_CALL,
    NONE,
    decref,
    incref,
    near,
    new_tuple,
    python,
    python_symbols,
)
from ferrule.runtime.entry.structs import ACCEPT, PLAN, instance_layout
from ferrule.runtime.entry.tensors import count_version
from ferrule.runtime.linking.engine import Engine, host_triple
from ferrule.runtime.llvm.emitter import COLD, LIKELY, UNLIKELY, Emitter
from ferrule.runtime.llvm.layouts import (
    I8,
    I64,
    PTR,
    PY_ARRAY,
    PY_ARRAY_DESCR,
    PY_OBJECT,
    VOID,
    Layout,
)
from ferrule.runtime.llvm.native import compile_native
from ferrule.runtime.values.foreign import (
    NUMPY_BYTEORDER_OFFSET,
    NUMPY_DESCR_OFFSET,
    NUMPY_FLAGS_OFFSET,
    NUMPY_TYPE_NUM_OFFSET,
    NUMPY_WRITEABLE,
)
from ferrule.runtime.values.views import DLPACK_TYPES

GATE_NAME: Final = "gate"
UNPACKING_GATE_NAME: Final = "unpacking_gate"
UNPACK_NAME: Final = "unpack"

_CALL: Final = "PyObject_CallFunctionObjArgs"
_ERROR: Final = ir.FunctionType(VOID, [PTR, PTR, PTR])
_FAIL: Final = "fail"
_SLOW_PATH: Final = "ferrule_slow_path"
_NAME_HIDDEN: Final = "ferrule_name_hidden"


class Gate:
    """The gate's machine code and the direct entries; a user of their addresses holds the gate."""

    __slots__ = ("_engine", "_entries", "_gates", "_helpers", "heap")

    def __init__(self, heap: HeapType, slow_path: Any, name_hidden: Any) -> None:
        self.heap = heap
        self._helpers = (slow_path, name_hidden)
        code = compile_native(GATE_NAME, gate_text(heap), optimize=False)
        self._engine = Engine.load(code, _symbols(*self._helpers))
        names = {False: GATE_NAME, True: UNPACKING_GATE_NAME}
        gates = {unpacks: self._address(name) for unpacks, name in names.items()}
        self._gates = gates
        self._entries = Entries(heap, gates, self._address(UNPACK_NAME))

    def install(self, instance: object, plan: CallPlan) -> None:
        """Let calls of an instance go to its direct entry, which is made if it is not there.

        The gate must live as long as the instance.
        """
        key = plan.key
        entry = None if key is None else self._entries.address(key)
        self.heap.install(instance, entry or self._gates[plan.form is not None])

    def bind(
        self,
        function: Any,
        plan: CallPlan,
        arguments: Sequence[Any],
        signature: specs.Signature,
        storages: Sequence[Sequence[Any]],
        written: Sequence[Any],
    ) -> Any:
        """A bound call of the function; the arguments are already converted for tvm-ffi's call.

        `signature` is the signature of the call, `storages` the torch storages in each argument,
        `written` the torch tensors that the function may write.
        """
        binder = self._entries.binder(unpacks=plan.form is not None)
        return binder.bind(function, plan, arguments, signature, storages, written)

    def _address(self, name: str) -> int:
        return self._engine.address(f"__tvm_ffi_{name}")


def gate_text(heap: HeapType) -> str:
    """The gate as LLVM IR, for instances of this type."""
    emitter = Emitter("ferrule.gate", host_triple())
    instance = instance_layout(heap)
    _define_fail(emitter)
    unpack = define_unpack(emitter, results.array_handle_offset())
    for name, last in ((GATE_NAME, None), (UNPACKING_GATE_NAME, unpack)):
        slow = _emit_slow(emitter, f"slow_{name}", instance, last)
        _emit_gate(emitter, name, instance, slow, last)
    name, names = f"__tvm_ffi_{UNPACK_NAME}", ("value", "form")
    with emitter.define(name, PTR, [PTR, PTR], names=names) as function:
        emitter.ret(emitter.call(unpack, function.args))
    return emitter.text()


def _emit_slow(e: Emitter, name: str, instance: Layout, unpack: ir.Function | None) -> ir.Function:
    """A function that converts the values with Python's slow path, then makes the generic call.

    It calls `slow_path(self, values, keyword names or None)`, which returns a tuple of arguments.
    Generated code makes the generic call, not Python code, so that the traceback of an error in the
    callee has no frame of ferrule.
    """
    arguments = [PTR, PTR, I64, PTR]
    names = ("self", "args", "count", "kwnames")
    with e.define(
        name, PTR, arguments, names=names, linkage="internal", attributes=COLD
    ) as function:
        self, args, count, kwnames = function.args
        total = e.alloca(I64, name="total")
        keywords = e.alloca(PTR, name="keywords")
        e.store(count, total)
        e.store(e.external(NONE), keywords)
        with e.if_then(e.builder.not_(e.is_null(kwnames))):
            size = python(e, "PyTuple_Size", kwnames)
            e.store(e.builder.add(count, size), total)
            e.store(kwnames, keywords)
        values, items = new_tuple(e, e.load(total, I64))
        with e.loop(e.load(total, I64)) as i:
            value = e.load(e.index(args, PTR, i), PTR)
            python(e, "Py_IncRef", value)
            e.store(value, e.index(items, PTR, i))
        arguments = [e.external(_SLOW_PATH), self, values, e.load(keywords, PTR), e.null()]
        prepared = python(e, _CALL, *arguments)
        decref(e, values)
        with e.if_then(e.is_null(prepared), likely=False):
            e.ret(e.null())
        form = _form(e, instance, self, unpack)
        _emit_generic_call(e, self, prepared, unpack, form)
    return function


def _form(e: Emitter, instance: Layout, self: ir.Value, unpack: ir.Function | None) -> ir.Value:
    """The form of the result, read before the call: the plan may be freed during the call."""
    if unpack is None:
        return e.null()
    return e.load_field(e.load_field(self, instance, "plan"), PLAN, "form")


def _emit_gate(
    e: Emitter, name: str, instance: Layout, slow: ir.Function, unpack: ir.Function | None
) -> None:
    arguments = [PTR, PTR, I64, PTR]
    names = ("self", "args", "nargsf", "kwnames")
    with e.define(f"__tvm_ffi_{name}", PTR, arguments, names=names) as function:
        self, args, nargsf, kwnames = function.args
        # The highest bit is a flag of the vectorcall protocol, not a part of the number.
        count = e.builder.and_(nargsf, e.const_i64((1 << 63) - 1), name="count")
        # Somebody may have moved the function object away, and the plan's memory with it.
        handle = e.load_field(self, instance, "handle")
        moved = e.icmp("ne", handle, e.load_field(self, instance, "owner"))
        gone = e.builder.or_(moved, e.builder.not_(e.is_null(kwnames)))
        with e.if_then(gone, likely=False):
            e.ret(e.call(slow, [self, args, count, kwnames]))
        plan = e.load_field(self, instance, "plan")
        wanted = e.load_field(plan, PLAN, "count", name="wanted")
        other = e.builder.icmp_unsigned("!=", count, wanted)
        named = e.builder.not_(e.is_null(e.load_field(plan, PLAN, "kwnames")))
        with e.if_then(e.builder.or_(other, named), likely=False):
            e.ret(e.call(slow, [self, args, count, kwnames]))
        values, items = new_tuple(e, count)
        refused = e.block("refused")
        with e.within(refused):
            # The items behind the refused one are null, which a tuple allows when it goes.
            python(e, "Py_DecRef", values)
            e.ret(e.call(slow, [self, args, count, kwnames]))
        accepted = e.field_ptr(plan, PLAN, "accepted")
        with e.loop(count) as i:
            argument = e.load(e.index(args, PTR, i), PTR, name="argument")
            table = e.load(e.index(accepted, PTR, i), PTR, name="table")
            _emit_type_check(e, argument, table, refused)
            incref(e, argument)
            e.store(argument, e.index(items, PTR, i))
        _emit_generic_call(e, self, values, unpack, _form(e, instance, self, unpack))


def _emit_generic_call(
    e: Emitter, self: ir.Value, values: ir.Value, unpack: ir.Function | None, form: ir.Value
) -> None:
    """Make tvm-ffi's call, release the tuple of arguments, and return the result, unpacked if
    `unpack` is given."""
    result = python(e, GENERIC_CALL, self, values, e.null())
    with e.if_then(e.is_null(result), likely=False):
        e.ret(e.call(e.module.globals[_FAIL], [self, values]))
    decref(e, values)
    if unpack is not None:
        packed = result
        result = e.call(unpack, [packed, form])
        decref(e, packed)
    e.ret(result)


def _define_fail(e: Emitter) -> None:
    """Ends a failed generic call: keeps its error, or raises one that names the argument."""
    with e.define(
        _FAIL, PTR, [PTR, PTR], names=("self", "values"), linkage="internal", attributes=COLD
    ) as function:
        error = [e.alloca(PTR, name=name) for name in ("type", "error", "traceback")]
        # Python code must not run while an error is set.
        e.call(near(e, "PyErr_Fetch", _ERROR), error)
        named = python(e, _CALL, e.external(_NAME_HIDDEN), *function.args, e.null())
        python(e, "Py_DecRef", function.args[1])
        held = [e.load(each, PTR) for each in error]
        # It has raised a better error, which is set now.
        with e.if_then(e.is_null(named)):
            for each in held:
                python(e, "Py_DecRef", each)
            e.ret(e.null())
        python(e, "Py_DecRef", named)
        e.call(near(e, "PyErr_Restore", _ERROR), held)
        e.ret(e.null())


def _emit_type_check(e: Emitter, argument: ir.Value, table: ir.Value, refused: ir.Block) -> None:
    """Go on if the argument's type is in the table, to `refused` if it is not."""
    kind = e.load_field(argument, PY_OBJECT, "ob_type")
    first, array, search = e.block("first"), e.block("array"), e.block("search")
    following, taken = e.block("following"), e.block("taken")
    found, lazy = e.block("found"), e.block("lazy")
    is_array = e.builder.icmp_unsigned("==", kind, e.load_field(table, ACCEPT, "array"))
    e.cond_branch(is_array, array, first)

    e.at(array)
    e.cond_branch(_is_unfit(e, argument), refused, taken, UNLIKELY)

    e.at(first)
    types = e.field_ptr(table, ACCEPT, "types")
    e.branch(search)

    e.at(search)
    position = e.builder.phi(I64, name="position")
    position.add_incoming(e.const_i64(0), first)
    candidate = e.load(e.index(types, PTR, position), PTR, name="candidate")
    e.cond_branch(e.builder.icmp_unsigned("==", kind, candidate), found, following, LIKELY)

    e.at(found)
    torch = [e.icmp("eq", kind, e.load_field(table, ACCEPT, name)) for name in _TORCH]
    e.cond_branch(e.builder.or_(*torch), lazy, taken, UNLIKELY)

    e.at(lazy)
    plain = e.block("plain")
    e.cond_branch(_is_pending(e, argument, table), refused, plain, UNLIKELY)

    e.at(plain)
    counter, number = (e.load_field(table, ACCEPT, name) for name in ("counter", "number"))
    with e.if_then(e.icmp("ne", counter, e.const_i64(0))):
        impl = e.load(e.index(argument, I8, e.load_field(table, ACCEPT, "impl")), PTR)
        count_version(e, e.index(impl, I8, counter), number)
    e.branch(taken)

    e.at(following)
    position.add_incoming(e.builder.add(position, e.const_i64(1)), following)
    e.cond_branch(e.is_null(candidate), refused, search, UNLIKELY)
    e.at(taken)


_TORCH: Final = ("torch", "parameter")


def _is_pending(e: Emitter, tensor: ir.Value, table: ir.Value) -> ir.Value:
    """Whether a torch tensor has a pending conjugation or negation, which DLPack cannot express."""
    place, keys, mask = (e.load_field(table, ACCEPT, name) for name in ("impl", "keys", "mask"))
    impl = e.load(e.index(tensor, I8, place), PTR)
    pending = e.builder.and_(e.load(e.index(impl, I8, keys), I64), mask)
    return e.icmp("ne", pending, e.const_i64(0))


def _is_unfit(e: Emitter, array: ir.Value) -> ir.Value:
    """Whether an array is read-only, or has a dtype that NumPy does not export through DLPack."""
    b = e.builder
    writable = b.and_(e.load_field(array, PY_ARRAY, "flags"), e.const_i32(NUMPY_WRITEABLE))
    read_only = b.icmp_unsigned("==", writable, e.const_i32(0))
    descr = e.load_field(array, PY_ARRAY, "descr")
    order = e.load_field(descr, PY_ARRAY_DESCR, "byteorder")
    swapped = b.icmp_unsigned("==", order, ir.Constant(I8, ord(">")))
    number = e.load_field(descr, PY_ARRAY_DESCR, "type_num")
    # A shift by 64 or more bits is poison in LLVM; `beyond` refuses such numbers.
    position = b.and_(b.zext(number, I64), e.const_i64(63))
    bit = b.and_(e.const_i64(DLPACK_TYPES), b.shl(e.const_i64(1), position))
    unlisted = b.icmp_unsigned("==", bit, e.const_i64(0))
    beyond = b.icmp_unsigned(">=", number, e.const_i32(64))
    return b.or_(b.or_(read_only, swapped), b.or_(unlisted, beyond))


def _symbols(slow_path: object, name_hidden: object) -> dict[str, int]:
    places = [PY_ARRAY.offset(name) for name in ("flags", "descr")]
    places += [PY_ARRAY_DESCR.offset(name) for name in ("byteorder", "type_num")]
    known = [NUMPY_FLAGS_OFFSET, NUMPY_DESCR_OFFSET, NUMPY_BYTEORDER_OFFSET, NUMPY_TYPE_NUM_OFFSET]
    if places != known:
        raise RuntimeError("the layout of numpy's arrays and the call plan disagree")
    objects = {_SLOW_PATH: slow_path, _NAME_HIDDEN: name_hidden}
    objects |= {ARRAY_TYPE: results.ARRAY, TUPLE_TYPE: tuple}
    objects |= {UNPACK: results.unpack, ITEM: results.item_of}
    found = python_symbols((*PYTHON, "PyErr_Fetch", "PyErr_Restore"))
    return found | {name: id(each) for name, each in objects.items()}
