"""The types and layouts of this process that a direct entry uses, each tested on live objects.

If a test fails, the form is not in `Surroundings.forms`, and its values go to the gate.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import tvm_ffi

from ferrule.runtime.calls.interpreter import read
from ferrule.runtime.entry.numbers import number_symbols, numbers_fit
from ferrule.runtime.entry.objects import object_symbols
from ferrule.runtime.entry.readers import Form
from ferrule.runtime.entry.structs import PY_CDATA, PY_FLOAT, PY_LONG, PY_VAR
from ferrule.runtime.llvm.layouts import PY_ARRAY, PY_ARRAY_DESCR
from ferrule.runtime.values.lazybits import LazyBits, lazy_bits
from ferrule.runtime.values.tensorwords import TensorWords, tensor_words
from ferrule.runtime.values.versions import VersionWords, version_words
from ferrule.specs.deferred import dataclass
from ferrule.specs.dtypes import BY_NAME

ARRAY_DTYPES: Final = 32
"""The size of the table of NumPy's dtypes, which is indexed by their number."""

FUNCTION_TYPES: Final = ("tvm_ffi_Function", "ferrule_Function")
"""Symbols of the types of functions."""

TORCH_OWN: Final = MappingProxyType(
    {
        "dispatch": "__torch_dispatch__",
        "dlpack": "__dlpack__",
        "functions": "__dlpack_c_exchange_api__",
    }
)
"""Attributes of torch.Tensor, by a word for symbols: a subclass with another one may have elements
that are not in the memory of torch."""

_EXCHANGE_API: Final = 7
"""Words of DLPack's struct of this name; the functions begin with the third."""

_TENSOR_TYPES: Final = "?bhilqBHILQefdFD"
"""NumPy's characters of the dtypes that DLPack has."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Forms that this process can read, and the addresses that the code for them needs.

    `has_compact_ints`: whether ints of one digit have the layout that `compact_int` reads.
    `dtypes` are the DLDataTypes of NumPy's dtypes by number; 0 if DLPack has no such dtype. `keep`
    holds the objects at the addresses. `lazy` is the position of torch's bits for a pending
    conjugation or negation; if it is unknown, the code calls methods of the tensor. `version` is
    the position of the versions of torch's tensors; if it is unknown, a call that writes one goes
    to the gate. `words` are the fields of torch's tensors; if they are unknown, torch's exchange
    function reads the tensors.
    """

    forms: frozenset[Form]
    has_compact_ints: bool
    symbols: Mapping[str, int]
    dtypes: tuple[int, ...]
    keep: tuple[Any, ...]
    lazy: LazyBits | None = None
    version: VersionWords | None = None
    words: TensorWords | None = None

    @property
    def has_torch(self) -> bool:
        """Whether torch's tensors are read."""
        return Form.TORCH in self.forms


def find_surroundings(function: type[Any], handle_offset: int) -> Surroundings:
    """Look at this process; `function` is the type of callables."""
    torch = _torch()
    symbols = {"c_void_p": id(ctypes.c_void_p)}
    symbols |= {kind.__name__: id(kind) for kind in (int, float, bool, str, bytes, tuple)}
    types = (tvm_ffi.Function, function)
    symbols |= {name: id(kind) for name, kind in zip(FUNCTION_TYPES, types, strict=True)}
    symbols |= {"tvm_ffi_Tensor": id(tvm_ffi.Tensor), "numpy_ndarray": id(np.ndarray)}
    forms = {Form.NONE, Form.BOOL, Form.INT, Form.TEXT, Form.FUNCTION}
    found = {
        Form.FLOAT: _floats_fit(),
        Form.BYTES: _bytes_fit(),
        Form.ADDRESS: _addresses_fit(),
        Form.TUPLE: _tuples_fit(),
        Form.RECORD: _tuples_fit(),
        Form.HANDLE: _tuples_fit() and _addresses_fit(),
        Form.TENSOR: _handle_fits(handle_offset),
        Form.ARRAY: _arrays_fit(),
        Form.FROZEN_ARRAY: _arrays_fit(),
        Form.TORCH: bool(torch.symbols),
        Form.NUMBER: numbers_fit(),
    }
    forms |= {form for form, fits in found.items() if fits}
    return Surroundings(
        frozenset(forms),
        _compact_ints_fit(),
        symbols | number_symbols() | object_symbols() | torch.symbols,
        _array_dtypes(),
        torch.keep,
        lazy_bits(),
        version_words(),
        tensor_words(),
    )


def torch_is_there() -> bool:
    """Whether torch has been imported, and its import is complete."""
    return hasattr(sys.modules.get("torch"), "Tensor")


# ---- torch ----


@dataclass(frozen=True, slots=True)
class _Torch:
    symbols: dict[str, int]
    keep: tuple[Any, ...] = ()


def _torch() -> _Torch:
    torch = sys.modules.get("torch")
    api = _exchange_api(getattr(torch, "Tensor", None))
    if torch is None or api is None:
        return _Torch({})
    _, _, allocator, _, to_object, read, work_stream = api
    names = {f"torch_{word}_name": sys.intern(name) for word, name in TORCH_OWN.items()}
    plain = {f"torch_plain_{w}": getattr(torch.Tensor, name) for w, name in TORCH_OWN.items()}
    is_conj, is_neg = torch.Tensor.is_conj, torch.Tensor.is_neg
    symbols = {
        "torch_Tensor": id(torch.Tensor),
        "torch_Parameter": id(torch.nn.Parameter),
        "torch_is_conj": id(is_conj),
        "torch_is_neg": id(is_neg),
        **{symbol: id(found) for symbol, found in (names | plain).items()},
        "torch_allocator": allocator,
        "torch_to_object": to_object,
        "torch_read": read,
        "torch_work_stream": work_stream,
    }
    fits = all(symbols.values())
    kept = (torch.Tensor, torch.nn.Parameter, is_conj, is_neg, *names.values(), *plain.values())
    return _Torch(symbols, kept) if fits else _Torch({})


def _exchange_api(kind: type[Any] | None) -> tuple[int, ...] | None:
    """The words of a type's DLPack exchange API; None if it has no known version."""
    given = getattr(kind, "__dlpack_c_exchange_api__", None)
    if given is None or os.environ.get("TVM_FFI_SKIP_DLPACK_C_EXCHANGE_API", "0") == "1":
        return None
    if not isinstance(given, int):
        pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
            ("PyCapsule_GetPointer", ctypes.pythonapi)
        )
        given = pointer(given, b"dlpack_exchange_api")
    words = tuple((ctypes.c_uint64 * _EXCHANGE_API).from_address(given))
    # The lower half is the major version, and another one has another struct.
    return words if words[0] & 0xFFFFFFFF == 1 else None


# ---- layouts, tried ----


@cache
def _floats_fit() -> bool:
    at = PY_FLOAT.offset("ob_fval")
    return all(ctypes.c_double.from_address(id(x) + at).value == x for x in (1.5, -2.0, 1e300))


def compact_int(word: int, digit: int) -> int | None:
    """The value of an int with at most one digit, from its fields; None for a longer int.

    From CPython 3.12 on, the first field is a tag: the number of digits and, in the lowest two
    bits, 1 minus the sign. Before 3.12, it is the number of digits with the sign of the int.
    """
    if sys.version_info >= (3, 12):
        return digit * (1 - (word & 3)) if word < 16 else None
    return digit * word if -1 <= word <= 1 else None


@cache
def _compact_ints_fit() -> bool:
    short = [0, 1, -1, 255, -255, (1 << 30) - 1, 1 - (1 << 30)]
    found = [_read_compact(value) for value in (*short, 1 << 30, -(1 << 62))]
    return found == [*short, None, None]


def _read_compact(value: int) -> int | None:
    base = id(value)
    word = ctypes.c_int64.from_address(base + PY_LONG.offset("size_or_tag")).value
    return compact_int(word, ctypes.c_uint32.from_address(base + PY_LONG.offset("digit")).value)


@cache
def _bytes_fit() -> bool:
    sizes = all(read(text, PY_VAR.offset("ob_size")) == len(text) for text in (b"", b"four"))
    first = bytes.__basicsize__ - 1
    return sizes and ctypes.string_at(id(b"four") + first, 5) == b"four\0"


@cache
def _addresses_fit() -> bool:
    holder = ctypes.c_void_p(0x1234)
    return read(holder, PY_CDATA.offset("b_ptr")) == ctypes.addressof(holder)


@cache
def _tuples_fit() -> bool:
    pair = (object(), object())
    items = tuple(read(pair, tuple.__basicsize__ + 8 * i) for i in range(2))
    return read(pair, PY_VAR.offset("ob_size")) == 2 and items == tuple(map(id, pair))


@cache
def _handle_fits(offset: int) -> bool:
    tensor = tvm_ffi.from_dlpack(np.zeros(1))
    return read(tensor, offset) == tensor.__chandle__()


@cache
def _arrays_fit() -> bool:
    return sys.byteorder == "little" and all(map(_array_fits, _arrays()))


def _arrays() -> Iterator[np.ndarray[Any, Any]]:
    yield np.zeros((2, 3), np.float32)[:, ::2]
    yield np.zeros((5, 1, 2), np.int16)[::-1]
    yield np.array(1.5).astype(">f8")
    frozen = np.zeros(3, np.complex64)
    frozen.flags.writeable = False
    yield frozen


def _array_fits(array: np.ndarray[Any, Any]) -> bool:
    """Whether the fields of an array are at the expected offsets."""
    base, descr, nd = id(array), id(array.dtype), array.ndim
    words = {name: read(array, PY_ARRAY.offset(name)) for name in ("data", "descr")}
    counts = {"nd": nd, "flags": array.flags.num}
    tables = {"dimensions": array.shape, "strides": array.strides}
    number = ctypes.c_int32.from_address(descr + PY_ARRAY_DESCR.offset("type_num")).value
    order = ctypes.c_char.from_address(descr + PY_ARRAY_DESCR.offset("byteorder")).value
    return (
        words == {"data": array.ctypes.data, "descr": descr}
        and all(
            ctypes.c_int32.from_address(base + PY_ARRAY.offset(name)).value == value
            for name, value in counts.items()
        )
        and all(
            tuple((ctypes.c_int64 * nd).from_address(read(array, PY_ARRAY.offset(name)))) == value
            for name, value in tables.items()
            if nd
        )
        and (number, order) == (array.dtype.num, array.dtype.byteorder.encode())
    )


@cache
def _array_dtypes() -> tuple[int, ...]:
    """DLDataTypes by the number of NumPy's dtype."""
    words = [0] * ARRAY_DTYPES
    for character in _TENSOR_TYPES:
        dtype = np.dtype(character)
        words[dtype.num] = BY_NAME[dtype.name].dlpack
    return tuple(words)
