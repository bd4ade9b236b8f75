"""Guards: tables of memory words and their expected values, compared by machine code.

In some nanoseconds a guard decides a question that takes microseconds in Python: whether names of
dicts, cells of closures and attributes of functions still refer to the same objects.  The offsets
in CPython's objects are found by inspection of live objects, without assumptions: if one is not
found, there is no guard.  True from a guard is certain; False means unknown, because the same
objects may be at another place.
"""

from __future__ import annotations

import ctypes
import sys
import sysconfig
import types
from collections.abc import Callable
from dataclasses import field
from functools import cache
from typing import Any, Final, NamedTuple

from ferrule.language.dependencies.lookups import ABSENT
from ferrule.specs.deferred import dataclass

_ALL: Final = (1 << 64) - 1
_NO_ARGUMENTS: Final = 4  # METH_NOARGS
_HEADER: Final = 16
"""Bytes of an object's reference count and type."""
_ROW: Final = 32
_LARGEST: Final = 1 << 16
"""The largest size in bytes of a dict's keys for a guard; the allocator returns larger ones to the
system."""

_TEXT: Final = """
declare void @Py_IncRef(ptr)

define ptr @__tvm_ffi_guard(ptr %self, ptr %unused) {
entry:
  %count.at = getelementptr i8, ptr %self, i64 16
  %bytes = load i64, ptr %count.at
  %first = getelementptr i8, ptr %self, i64 BASE
  %end = getelementptr i8, ptr %first, i64 %bytes
  br label %next

next:
  %row = phi ptr [ %first, %entry ], [ %after, %on ]
  %done = icmp eq ptr %row, %end
  br i1 %done, label %same, label %compare

compare:
  %address = load ptr, ptr %row
  %mask.at = getelementptr i64, ptr %row, i64 1
  %mask = load i64, ptr %mask.at
  %wanted.at = getelementptr i64, ptr %row, i64 2
  %wanted = load i64, ptr %wanted.at
  %skip.at = getelementptr i64, ptr %row, i64 3
  %skip = load i64, ptr %skip.at
  %whole = load i64, ptr %address
  %word = and i64 %whole, %mask
  %equal = icmp eq i64 %word, %wanted
  br i1 %equal, label %on, label %differs

differs:
  %plain = icmp eq i64 %skip, 0
  br i1 %plain, label %other, label %versions

versions:
  %begins = icmp sgt i64 %skip, 0
  br i1 %begins, label %on, label %renew

renew:
  %version.at = getelementptr i8, ptr %row, i64 %skip
  store i64 %word, ptr %version.at
  br label %on

on:
  %over = phi i64 [ %skip, %compare ], [ 0, %versions ], [ 0, %renew ]
  %forwards = icmp sgt i64 %over, 0
  %jump = select i1 %forwards, i64 %over, i64 0
  %step = add i64 %jump, 32
  %after = getelementptr i8, ptr %row, i64 %step
  br label %next

same:
  call void @Py_IncRef(ptr inttoptr (i64 TRUE to ptr))
  ret ptr inttoptr (i64 TRUE to ptr)

other:
  call void @Py_IncRef(ptr inttoptr (i64 FALSE to ptr))
  ret ptr inttoptr (i64 FALSE to ptr)
}
"""
"""A row is an address, a mask, the expected word, and an action.  The action 0 is a plain
comparison.  With a positive action, if the comparison holds, that many bytes of rows after it are
skipped; otherwise all of them are compared.  With a negative action the row never fails, and stores
the current word as the expected word of the row that far back: the rows between them were true for
it.
"""


class _Method(ctypes.Structure):
    """PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("call", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


class _Row(NamedTuple):
    address: int
    wanted: int
    mask: int = _ALL
    skip: int = 0


@dataclass(frozen=True, slots=True)
class _Places:
    """Offsets in bytes from the start of an object to its contents.

    `count` is an offset in a dict's keys; `size` masks the bits of their second word that encode
    their size.  `version` is None if dicts have none.
    """

    cell: int
    code: int
    defaults: int
    keyword_defaults: int
    annotations: int
    bases: int
    items: int
    keys: int
    size: int
    count: int
    version: int | None


@dataclass(slots=True)
class Guard:
    """Collects conditions.  Each `add` returns whether memory words can decide the condition;
    otherwise the guard does not include it."""

    _places: _Places
    _rows: list[_Row] = field(default_factory=list)
    _names: dict[int, tuple[dict[Any, Any], dict[str, Any]]] = field(default_factory=dict)
    _kept: list[object] = field(default_factory=list)

    def add_name(self, namespace: Any, name: str, value: Any) -> bool:
        """A name of a dict has this value, or is missing (`ABSENT`)."""
        if type(namespace) is not dict or type(name) is not str:
            return False
        if id(namespace) not in self._names:
            keys = _word(id(namespace) + self._places.keys)
            if _slots(namespace, keys, tuple(dict.items(namespace))) is None:
                return False
            self._names[id(namespace)] = namespace, {}
        return self._names[id(namespace)][1].setdefault(name, value) is value

    def add_cell(self, cell: types.CellType, value: Any) -> None:
        """A variable of a closure has this value, or none (`ABSENT`)."""
        self._pointer(cell, self._places.cell, value)

    def add_function(self, function: types.FunctionType, code: object, defaults: object) -> None:
        """A function has this code and these defaults."""
        self._pointer(function, self._places.code, code)
        self._pointer(function, self._places.defaults, ABSENT if defaults is None else defaults)

    def add_keyword_defaults(self, function: types.FunctionType, values: object) -> None:
        """A function has this dict of defaults of keyword-only parameters."""
        found = ABSENT if values is None else values
        self._pointer(function, self._places.keyword_defaults, found)

    def add_annotation(self, function: types.FunctionType, name: str) -> bool:
        """A function has its current annotation of this name, or none."""
        found = function.__annotations__
        self._pointer(function, self._places.annotations, found)
        return self.add_name(found, name, found.get(name, ABSENT))

    def add_slot(self, owner: Any, value: object) -> bool:
        """A slot of an object still has this value, which is in no other of its slots."""
        offsets = range(_HEADER, type(owner).__basicsize__, 8)
        found = [each for each in offsets if _word(id(owner) + each) == id(value)]
        if len(found) != 1:
            return False
        self._pointer(owner, found[0], value)
        return True

    def add_list(self, value: list[Any], items: tuple[Any, ...]) -> bool:
        """A list holds these very items."""
        where = id(value) + self._places.items
        first = _word(where)
        self._rows += [_Row(id(value) + _HEADER, len(items)), _Row(where, first)]
        self._rows += [_Row(first + 8 * i, id(each)) for i, each in enumerate(items)]
        self._kept += [value, items]
        return _words(first, len(items)) == [id(each) for each in items]

    def add_dict(self, value: dict[Any, Any], items: tuple[tuple[Any, Any], ...]) -> bool:
        """A dict holds these very keys and values in this order, and no others."""
        keys = _word(id(value) + self._places.keys)
        slots = _slots(value, keys, items)
        if slots is None:
            return False
        rows = [*self._head(value, keys), self._count(keys)]
        for at, (key, item) in zip(slots, items, strict=True):
            rows += [_Row(at, id(key)), _Row(at + 8, id(item))]
        self._kept += [value, items]
        self._rows += self._versioned(value, rows)
        return True

    def add_class(self, value: Any) -> None:
        """An object has its current class, and a class its current bases."""
        self._pointer(value, 8, type(value))
        if isinstance(value, type):
            self._pointer(value, self._places.bases, value.__mro__)

    def made(self) -> Callable[[], bool] | None:
        """The function that checks all conditions; None if they cannot be checked."""
        for namespace, names in self._names.values():
            rows = self._name_rows(namespace, names)
            if rows is None:
                return None
            self._rows += rows
        return _callable(self._rows, (*self._kept, *self._names.values()))

    def _pointer(self, owner: Any, offset: int, value: Any) -> None:
        self._rows.append(_Row(id(owner) + offset, 0 if value is ABSENT else id(value)))
        self._kept += [owner, value]

    def _name_rows(self, namespace: dict[Any, Any], names: dict[str, Any]) -> list[_Row] | None:
        """Rows for some names of a dict; for all keys if a name must stay missing."""
        keys, items = _word(id(namespace) + self._places.keys), tuple(dict.items(namespace))
        slots = _slots(namespace, keys, items)
        if slots is None:
            return None
        self._kept.append(items)
        rows = self._head(namespace, keys)
        if any(value is ABSENT for value in names.values()):  # `in` would call the user's `==`
            rows.append(self._count(keys))
            rows += [_Row(at, id(key)) for at, (key, _) in zip(slots, items, strict=True)]
        found = {key: (at, key) for at, (key, _) in zip(slots, items, strict=True)}
        for name, value in names.items():
            if (name in found) is (value is ABSENT):
                return None
            if value is not ABSENT:
                at, key = found[name]
                rows += [_Row(at, id(key)), _Row(at + 8, id(value))]
        return self._versioned(namespace, rows)

    def _head(self, value: dict[Any, Any], keys: int) -> list[_Row]:
        """The keys are at the same place with the same size, so that the next reads are within
        them."""
        size = _word(keys + 8) & self._places.size
        return [_Row(id(value) + self._places.keys, keys), _Row(keys + 8, size, self._places.size)]

    def _count(self, keys: int) -> _Row:
        """No key has been added."""
        return _Row(keys + self._places.count, _word(keys + self._places.count))

    def _versioned(self, value: dict[Any, Any], rows: list[_Row]) -> list[_Row]:
        """The rows, skipped while the dict has not changed at all."""
        if self._places.version is None:
            return rows
        at, size = id(value) + self._places.version, _ROW * (len(rows) + 1)
        # No version is 0, so the first check compares.
        return [_Row(at, 0, skip=size), *rows, _Row(at, 0, skip=16 - size)]


def new_guard() -> Guard | None:
    """A guard for this interpreter, if its objects have the expected layout."""
    places = _places()
    return None if places is None else Guard(places)


def _word(address: int) -> int:
    return ctypes.c_uint64.from_address(address).value


def _words(address: int, count: int) -> list[int]:
    return list((ctypes.c_uint64 * count).from_address(address)) if count else []


def _slots(
    value: dict[Any, Any], keys: int, items: tuple[tuple[Any, Any], ...]
) -> list[int] | None:
    """The place of each key, with its value right after it; None for a dict with separate values,
    and for a very large one."""
    size = dict.__sizeof__(value) - dict.__basicsize__
    if size > _LARGEST:
        return None
    words, slots, place = _words(keys, size // 8), [], 2
    for key, item in items:
        try:
            place = words.index(id(key), place)
        except ValueError:
            return None
        if words[place + 1 : place + 2] != [id(item)]:
            return None
        slots.append(keys + 8 * place)
        place += 2
    return slots


# ---- the machine code ----


@cache
def _method() -> tuple[_Method, object]:
    """The machine code as a Python function, and the object that keeps it alive."""
    from ferrule.runtime.linking.engine import Engine
    from ferrule.runtime.llvm.native import compile_native

    text = _TEXT.replace("BASE", str(bytes.__basicsize__ - 1))
    text = text.replace("TRUE", str(id(True))).replace("FALSE", str(id(False)))
    counting = ctypes.cast(ctypes.pythonapi.Py_IncRef, ctypes.c_void_p).value
    assert counting is not None, "the interpreter has it"
    engine = Engine.load(compile_native("guard", text), {"Py_IncRef": counting})
    address = engine.address("__tvm_ffi_guard")
    return _Method(b"unchanged", address, _NO_ARGUMENTS, None), engine


def _callable(rows: list[_Row], kept: object) -> Callable[[], bool]:
    """A C function whose `self` is the table, and whose module keeps the objects alive."""
    words = [word for row in rows for word in (row.address, row.mask, row.wanted, row.skip)]
    table = b"".join((word & _ALL).to_bytes(8, sys.byteorder) for word in words)
    make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.py_object)(
        ("PyCFunction_NewEx", ctypes.pythonapi)
    )
    method, _ = _method()
    found: Callable[[], bool] = make(ctypes.addressof(method), table, kept)
    return found


# ---- offsets ----


@cache
def _places() -> _Places | None:
    """The offsets found by inspection of live objects; None if anything is unexpected."""
    if sys.implementation.name != "cpython" or sysconfig.get_config_var("Py_GIL_DISABLED"):
        return None
    sound = object.__basicsize__ == _HEADER and ctypes.sizeof(ctypes.c_void_p) == 8
    if not sound or _word(id(_places) + 8) != id(type(_places)):
        return None
    try:
        return _found()
    except Exception:  # an interpreter with another object layout
        return None


def _found() -> _Places:
    class Probe:
        pass

    def probe(a: int = 1000, *, b: int = 2000) -> Any:
        return probe

    keys = _keys()
    return _Places(
        cell=_pointer((probe.__closure__ or ())[0], probe),
        code=_pointer(probe, probe.__code__),
        defaults=_pointer(probe, probe.__defaults__),
        keyword_defaults=_pointer(probe, probe.__kwdefaults__),
        annotations=_pointer(probe, probe.__annotations__),
        bases=_pointer(Probe, Probe.__mro__),
        items=_list_items(),
        keys=keys,
        # Since 3.11 three bytes are sizes and the kind of the keys. A version follows, which may
        # change while the keys stay. Before, the word is the size (pycore_dict.h).
        size=0xFFFFFF if sys.version_info >= (3, 11) else _ALL,
        count=_count(keys),
        version=_version(),
    )


def _pointer(owner: Any, value: object) -> int:
    """The offset in an object of the address of another one; ValueError unless there is exactly
    one."""
    offsets = range(_HEADER, type(owner).__basicsize__, 8)
    (found,) = [each for each in offsets if _word(id(owner) + each) == id(value)]
    return found


def _keys() -> int:
    """The offset of the keys' address in a dict: one offset that works for all dicts."""
    offset = 32
    for count in (1, 5, 40, 300):
        for shape in ("{}", "a {}"):
            value: dict[Any, Any] = {shape.format(i): object() for i in range(count)}
            if _slots(value, _word(id(value) + offset), tuple(value.items())) is None:
                raise LookupError
            value[count] = object()  # now not all keys are strings
            if _slots(value, _word(id(value) + offset), tuple(value.items())) is None:
                raise LookupError
            del value[count]
    return offset


def _count(keys: int) -> int:
    """The offset in a dict's keys of the number of keys ever added: it grows by one with each."""
    found = set(range(8, 40, 8))
    for start in (0, 7, 25):
        value = dict.fromkeys(map(str, range(start)), 0)
        for i in range(40):
            at = _word(id(value) + keys)
            before = {each: _word(at + each) for each in found}
            value[f"more {i}"] = i
            if _word(id(value) + keys) != at:
                continue
            found = {each for each in found if _word(at + each) == before[each] + 1}
            after = {each: _word(at + each) for each in found}
            value[f"more {i}"] = -1
            if i % 3 == 0:
                del value[f"more {i}"]
            found = {each for each in found if _word(at + each) == after[each]}
    (count,) = found
    return count


_CHANGES: Final = (
    "x = 1", "x = 2", "y = 3", "del y", "x += 1", "globals().update(x=7)", "globals()['z'] = 1",
    "globals().pop('z')", "def x(): pass", "import sys as x", "for x in range(3): pass",
    "globals().setdefault('w', 5)", "globals().popitem()", "globals().update({'q': 1, 'r': 2})",
    "exec('x = 1.5')", "globals().__ior__({'x': 8})", "globals().clear()",
)  # fmt: skip


def _version() -> int | None:
    """The offset of a dict's version, a number that is new after each change of any dict; None if
    dicts have none, as since CPython 3.14."""
    offset = 24
    value: dict[str, Any] = {"__builtins__": __builtins__, "x": 0}
    seen = {0, _word(id(value) + offset)}
    for change in _CHANGES:
        exec(change, value)
        seen.add(_word(id(value) + offset))
    others = [{}, {"x": 1}, dict(value), dict.fromkeys("ab")]
    module = types.ModuleType("probe")
    for i in range(64):  # often enough that the interpreter specialises the code
        module.x = i  # type: ignore[attr-defined]
        seen.add(_word(id(vars(module)) + offset))
    quiet = _word(id(others[3]) + offset)
    assert others[3].get("a") is None and "b" in others[3] and [*others[3]] == ["a", "b"]
    full = [_word(id(each) + offset) for each in others[1:]]
    enough = len(seen) >= 2 + len(_CHANGES) + 64 and len(set(full)) == len(full)
    return offset if enough and quiet == _word(id(others[3]) + offset) else None


def _list_items() -> int:
    """The offset of the items' address in a list."""
    offset = 24
    for count in (1, 3, 50):
        value = [object() for _ in range(count)]
        value.append(value)
        wanted = [id(each) for each in value]
        if _word(id(value) + _HEADER) != count + 1:
            raise LookupError
        if _words(_word(id(value) + offset), len(wanted)) != wanted:
            raise LookupError
    return offset
