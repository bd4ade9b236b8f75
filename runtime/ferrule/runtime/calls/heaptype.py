"""The heap type under `Function`: a `tvm_ffi.Function` with a vectorcall slot.

CPython calls an object through its vectorcall pointer without a tuple of arguments and without a
look-up. A class statement cannot make a type with such a pointer, so `PyType_FromSpecWithBases`
makes the type. An instance has the fields of the base, followed by four words: the vectorcall
pointer, the pointer to the call plan, the function object that owns the plan, and the list of weak
references.

This module reads or tests each assumption about the interpreter and the base; none is hard-coded.
If an assumption fails, `make_heap_type` raises `Unfit`, and the caller makes an ordinary subclass.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from typing import Any, Final

import tvm_ffi

from ferrule.runtime.calls import interpreter
from ferrule.runtime.calls.interpreter import WORD as _WORD
from ferrule.runtime.calls.interpreter import Unfit
from ferrule.specs.deferred import dataclass

# Slot numbers of CPython's typeslots.h, which are part of the stable ABI.
_TP_CALL: Final = 50
_TP_DOC: Final = 56
_TP_MEMBERS: Final = 72

# `Py_TPFLAGS_…` of object.h, stable as well.
_FLAG_BASETYPE: Final = 1 << 10
_FLAG_HAVE_VECTORCALL: Final = 1 << 11
_FLAG_HAVE_VERSION_TAG: Final = 1 << 18

_T_PYSSIZET: Final = 19
_READONLY: Final = 1

_OWN_WORDS: Final = 4


class _Member(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("type", ctypes.c_int),
        ("offset", ctypes.c_ssize_t),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


class _Slot(ctypes.Structure):
    _fields_ = [("slot", ctypes.c_int), ("value", ctypes.c_void_p)]


class _Spec(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("basicsize", ctypes.c_int),
        ("itemsize", ctypes.c_int),
        ("flags", ctypes.c_uint),
        ("slots", ctypes.POINTER(_Slot)),
    ]


@dataclass(frozen=True, slots=True)
class HeapType:
    """The type, and the offsets of the words for a call in its instances.

    `is_late`: an instance can be called before machine code is installed in it. A debug build of
    CPython asserts that a type with vectorcall pointers has a function for calls besides them.
    """

    type: type[Any]
    base_size: int
    handle_offset: int
    release_gil_offset: int
    is_late: bool
    keep: tuple[Any, ...]  # the interpreter goes on reading these buffers

    @property
    def vectorcall_offset(self) -> int:
        """The offset of the vectorcall pointer."""
        return self.base_size

    @property
    def plan_offset(self) -> int:
        """The offset of the pointer to the call plan."""
        return self.base_size + _WORD

    @property
    def owner_offset(self) -> int:
        """The offset of the word with the function object that owns the plan."""
        return self.base_size + 2 * _WORD

    @property
    def size(self) -> int:
        """Bytes of an instance."""
        return self.base_size + _OWN_WORDS * _WORD

    def own(self, instance: object, plan: int) -> None:
        """Give `instance` its plan, whose address must stay valid as long as its handle does."""
        handle = interpreter.read(instance, self.handle_offset)
        for offset, word in {self.plan_offset: plan, self.owner_offset: handle}.items():
            ctypes.c_uint64.from_address(id(instance) + offset).value = word

    def install(self, instance: object, entry: int) -> None:
        """Let calls go to the machine code at `entry`, which reads the plan."""
        ctypes.c_uint64.from_address(id(instance) + self.vectorcall_offset).value = entry

    def is_installed(self, instance: object) -> bool:
        """Whether calls go to machine code."""
        return interpreter.read(instance, self.vectorcall_offset) != 0

    def call(self, instance: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call the installed machine code."""
        return _vectorcall()(instance, args, kwargs)


@cache
def _vectorcall() -> Any:
    prototype = ctypes.PYFUNCTYPE(ctypes.py_object, *[ctypes.py_object] * 3)
    return prototype(("PyVectorcall_Call", ctypes.pythonapi))


def make_heap_type(name: str, doc: str, base: type[Any]) -> HeapType:
    """The type; `Unfit` on an interpreter where it cannot be made safely.

    `base` is a subclass of `tvm_ffi.Function` without fields of its own; its `__call__` is called
    as long as nothing is installed.
    """
    _require_fit()
    handle_offset, flag_offset = _base_offsets()
    size = -(-tvm_ffi.Function.__basicsize__ // _WORD) * _WORD
    members = (_Member * 3)(
        _Member(b"__vectorcalloffset__", _T_PYSSIZET, size, _READONLY, None),
        _Member(b"__weaklistoffset__", _T_PYSSIZET, size + 3 * _WORD, _READONLY, None),
        _Member(),
    )
    doc_buffer = ctypes.create_string_buffer(doc.encode())
    # Without a slot for calls CPython calls the base's `__call__` while the pointer is null.  A
    # `__call__` of the type itself would make CPython 3.12 and later ignore the pointer.
    late = not hasattr(sys, "gettotalrefcount")
    call = None if late else ctypes.cast(ctypes.pythonapi.PyVectorcall_Call, ctypes.c_void_p)
    slots = (_Slot * (3 if late else 4))(
        _Slot(_TP_DOC, ctypes.addressof(doc_buffer)),
        _Slot(_TP_MEMBERS, ctypes.addressof(members)),
        *([] if call is None else [_Slot(_TP_CALL, call)]),
    )
    flags = _FLAG_BASETYPE | _FLAG_HAVE_VECTORCALL | _FLAG_HAVE_VERSION_TAG
    spec = _Spec(name.encode(), size + _OWN_WORDS * _WORD, 0, flags, slots)
    made = HeapType(
        _from_spec(spec, base),
        size,
        handle_offset,
        flag_offset,
        late,
        (members, doc_buffer, slots, spec),
    )
    interpreter.check_type(made.type, made.size, made.vectorcall_offset, size + 3 * _WORD)
    return made


def _from_spec(spec: _Spec, base: type[Any]) -> type[Any]:
    make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object)(
        ("PyType_FromSpecWithBases", ctypes.pythonapi)
    )
    made: type[Any] = make(ctypes.addressof(spec), (base,))
    return made


def _require_fit() -> None:
    if (why := interpreter.unfit()) is not None:
        raise Unfit(why)
    if tvm_ffi.Function.__weakrefoffset__:
        raise Unfit("functions of this tvm-ffi have weak references of their own")


def _base_offsets() -> tuple[int, int]:
    """The offsets of the handle and, after it, of the attribute `release_gil` in the base."""
    handle, flag = _handle_offset(), _release_gil_offset()
    if handle is None or flag is None or flag < handle + _WORD:
        raise Unfit("functions of this tvm-ffi are laid out in another way")
    return handle, flag


def _handle_offset() -> int | None:
    """The offset of the function object's handle in the base, found by a search in an instance."""
    probe = tvm_ffi.get_global_func("ffi.Array")
    handle = probe.__chandle__()
    for offset in range(2 * _WORD, tvm_ffi.Function.__basicsize__ - _WORD + 1, _WORD):
        if ctypes.c_uint64.from_address(id(probe) + offset).value == handle:
            return offset
    return None


def _release_gil_offset() -> int | None:
    """The offset of the attribute `release_gil`, a C int, in the base, found in the same way."""
    probe = tvm_ffi.get_global_func("ffi.Array")
    seen = []
    # Three values: another field may happen to have one of them.
    for value in (True, False, True):
        probe.release_gil = value
        words = range(2 * _WORD, tvm_ffi.Function.__basicsize__ - 3, 4)
        seen.append({o for o in words if _int32(probe, o) == int(value)})
    found = set.intersection(*seen)
    return min(found) if len(found) == 1 else None


def _int32(instance: object, offset: int) -> int:
    return ctypes.c_int32.from_address(id(instance) + offset).value
