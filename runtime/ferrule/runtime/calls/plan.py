"""The call plan of a function: code, names, defaults, and the types that need no conversion.

Gate and direct entry read the plan as C memory; `PLAN` and `ACCEPT` of `entry/structs.py` are its
layouts. A plan is immutable and holds a reference to each object whose address it contains, so
these addresses stay valid.
"""

from __future__ import annotations

import ctypes
import sys
import types
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import import_module
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import tvm_ffi
from typing_extensions import assert_never

from ferrule import specs
from ferrule.runtime.artefacts import Origin
from ferrule.runtime.calls.results import Form, form_of
from ferrule.runtime.entry.key import EntryKey
from ferrule.runtime.values.foreign import has_big_ints, numpy_fields_found
from ferrule.runtime.values.lazybits import lazy_bits
from ferrule.runtime.values.typeinfo import classes_of
from ferrule.runtime.values.versions import version_words
from ferrule.runtime.values.views import has_dlpack_dtype
from ferrule.specs.deferred import dataclass
from ferrule.specs.params import WithTraits

if TYPE_CHECKING:
    from ferrule.runtime.exporting.headers import Described

FUNCTIONS: Final[list[type[Any]]] = []
"""The class of ferrule's functions, which puts itself here: its instances have plans."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """The types that one parameter accepts without conversion.

    An instance of `array` is accepted if it is writable and has a dtype of NumPy's own. An instance
    of `torch`, whose types are also in `types`, is accepted if it has no pending conjugation or
    negation; its version is counted if the parameter is `written`.
    """

    types: tuple[type[Any], ...]
    array: type[Any] | None = None
    torch: tuple[type[Any], ...] = ()
    written: bool = False

    def takes(self, value: Any) -> bool:
        """Whether the gate accepts this value without conversion."""
        kind = type(value)
        if kind is self.array:
            return bool(value.flags.writeable) and has_dlpack_dtype(value)
        if kind in self.torch and (bits := lazy_bits()) is not None and bits.pending(value):
            return False
        return kind in self.types


@dataclass(frozen=True, slots=True)
class CallPlan:
    """A plan in C memory, valid while this object lives.

    `places` maps names to positions of parameters, `code` is the address of the wrapper, `key` that
    of the direct entry, `form` the form of the result.
    """

    accepted: tuple[Accepted, ...]
    places: Mapping[str, int]
    address: int
    code: int
    key: EntryKey | None
    form: Form
    memory: tuple[Any, ...]
    others: Mapping[int, OtherCount]


@dataclass(frozen=True, slots=True)
class OtherCount:
    """The data for the slow path about calls of an overload with another number of arguments."""

    signature: specs.Signature
    places: Mapping[str, int]
    accepted: tuple[Accepted, ...]


def _other_counts(signature: specs.Signature) -> Mapping[int, OtherCount]:
    if not isinstance(signature, specs.Overloads):
        return MappingProxyType({})
    found = {}
    for count, other in signature.others.items():
        places = {param.name: i for i, param in enumerate(other.arguments)}
        found[count] = OtherCount(other, places, tuple(map(accepted_types, other.arguments)))
    return MappingProxyType(found)


def make_plan(signature: specs.Signature, code: int, key: EntryKey | None = None) -> CallPlan:
    """The plan for a signature and the wrapper at the address `code`.

    It accepts types of the frameworks that are imported already. `key` is that of the direct entry.
    """
    params = signature.arguments
    accepted = tuple(accepted_types(param) for param in params)
    tables = {entry: _table(entry) for entry in accepted}
    texts = tuple(sys.intern(param.name) for param in params)
    values = tuple(param.default for param in params)
    names = _words(map(id, texts))
    defaults = _words(0 if value is specs.REQUIRED else id(value) for value in values)
    first = (len(params), code, ctypes.addressof(names), ctypes.addressof(defaults))
    kwnames, form = texts[signature.positional :], form_of(signature)
    ways = (signature.positional, signature.unnamed, id(kwnames) if kwnames else 0)
    result = 0 if form is None else id(form)
    listed = (ctypes.addressof(tables[entry]) for entry in accepted)
    plan = _words([*first, *ways, result, *listed])
    places = MappingProxyType({name: i for i, name in enumerate(texts)})
    kept = (plan, names, defaults, texts, values, kwnames, *tables.values())
    others = _other_counts(signature)
    return CallPlan(accepted, places, ctypes.addressof(plan), code, key, form, kept, others)


def _words(values: Iterable[int]) -> ctypes.Array[ctypes.c_uint64]:
    listed = list(values)
    return (ctypes.c_uint64 * len(listed))(*listed)


def accepted_types(param: specs.Param) -> Accepted:
    """The types that a parameter accepts without conversion: tvm-ffi passes them on unchanged.

    Tuples, lists and dicts are not among them, because their items may need a conversion.
    """
    match param:
        case specs.Tensor(read_only=read_only):
            return _tensors(_torch_tensors(written=not read_only), written=not read_only)
        case specs.Scalar(dtype=dtype):
            return Accepted(_number_types(dtype))
        case specs.Optional(item=item):
            return _joined(accepted_types(item), Accepted((type(None),)))
        case specs.Union(members=members):
            return _joined(*map(accepted_types, members))
        case specs.Shape():
            return Accepted((tvm_ffi.Shape, *_torch_types("Size")))
        case specs.Stream():
            return Accepted((*_types(param), *_torch_stream()))
        case specs.Function():
            return Accepted(_function_types()[:2])  # `callbacks` keeps what others raise
        case specs.AnyValue():
            return _joined(
                Accepted((*_VALUES, *_function_types())), _tensors(_torch_tensors(written=False))
            )
        case specs.Tuple():
            return Accepted((tvm_ffi.Array, tvm_ffi.List))
        case specs.Constant():
            return Accepted((int, bool, float, str))
        case specs.Object(type_key=key):
            return Accepted((*_types(param), *classes_of(key)))
        case WithTraits():
            return Accepted(_types(param))
        case _:
            assert_never(param)


def _types(param: WithTraits) -> tuple[type[Any], ...]:
    return tuple(_class(name) for name in param.traits.accepted)


@cache
def _class(name: str) -> type[Any]:
    """The class that a spec's traits name."""
    if name == "None":
        return type(None)
    module, _, attribute = name.rpartition(".")
    found: type[Any] = getattr(import_module(module or "builtins"), attribute)
    return found


_VALUES: Final = (int, float, bool, str, type(None), bytes, ctypes.c_void_p, tvm_ffi.dtype)


def _number_types(dtype: specs.DType) -> tuple[type[Any], ...]:
    # Ints of more than 64 bits need a conversion if tvm-ffi cannot pass them on.
    is_float = dtype.kind == "float"
    big = is_float or (dtype.kind == "uint" and dtype.bits == 64)
    ints: tuple[type[Any], ...] = (bool,) if big and not has_big_ints() else (int, bool)
    return (float, *ints) if is_float else ints


def _joined(*entries: Accepted) -> Accepted:
    """The types that at least one of them accepts."""
    arrays = [entry.array for entry in entries if entry.array is not None]
    kinds = dict.fromkeys(kind for entry in entries for kind in entry.types)
    torch = dict.fromkeys(kind for entry in entries for kind in entry.torch)
    written = any(entry.written for entry in entries)
    return Accepted(tuple(kinds), arrays[0] if arrays else None, tuple(torch), written)


def _tensors(torch: Sequence[type[Any]], *, written: bool = False) -> Accepted:
    """Arrays, tensors of tvm-ffi and of torch's types, the most likely first."""
    found = (*torch[:1], tvm_ffi.Tensor, *torch[1:])
    array = np.ndarray if numpy_fields_found() else None
    return Accepted(found, array, tuple(torch), written)


def _torch_tensors(*, written: bool) -> tuple[type[Any], ...]:
    """The tensor types of torch; empty if the gate could not check their lazy bits, or not count
    their versions where they are written: then the slow path asks each tensor."""
    if lazy_bits() is None or (written and version_words() is None):
        return ()
    return (*_torch_types("Tensor"), *_torch_types("nn.Parameter"))


def _function_types() -> tuple[type[Any], ...]:
    python = (types.FunctionType, types.BuiltinFunctionType, types.MethodType)
    return (tvm_ffi.Function, *FUNCTIONS, *python)


def _torch_types(name: str) -> tuple[type[Any], ...]:
    """The type of torch with this name, if torch has been imported."""
    torch = sys.modules.get("torch")
    return () if torch is None else (attrgetter(name)(torch),)


def _torch_stream() -> tuple[type[Any], ...]:
    """torch's streams, where they have the protocol that tvm-ffi knows."""
    return tuple(t for t in _torch_types("cuda.Stream") if hasattr(t, "__cuda_stream__"))


def _table(entry: Accepted) -> ctypes.Array[ctypes.c_uint64]:
    """The words of `ACCEPT`: `array` or null, torch's types, bits and version, the types, null."""
    array = 0 if entry.array is None else id(entry.array)
    bits = lazy_bits() if entry.torch else None
    version = version_words() if entry.torch and entry.written else None
    lazy = [0] * 5
    if bits is not None:
        lazy = [*map(id, (entry.torch * 2)[:2]), bits.impl, bits.keys, bits.mask]
    counted = [0, 0] if version is None else [version.counter, version.number]
    return _words([array, *lazy, *counted, *map(id, entry.types), 0])


# ---- what a compiled function knows: in its `__dict__`, for all that look into functions ----

STATE: Final = "_ferrule_state"
"""The name of the state in a function's `__dict__`."""


@dataclass(slots=True, eq=False)
class Count:
    """The calls that Python made so far."""

    calls: int = 0


@dataclass(frozen=True, slots=True)
class State:
    """The signature, origin and plan of a function, and what was given to `build` for it."""

    signature: specs.Signature
    origin: Origin
    plan: CallPlan
    doc: str | None
    notes: Mapping[str, Any]
    made: Count


def state_of(function: Any) -> State:
    """The state of a function.  RuntimeError for one that has no code."""
    try:
        state: State = function.__dict__[STATE]
    except KeyError:
        raise RuntimeError("this function has no code: ferrule.compile makes functions") from None
    return state


def origin_of(function: Any) -> Origin:
    """The origin of a function, which can emit its code again."""
    return state_of(function).origin


def described(function: Any) -> Described:
    """The signature and docstring of a function, for headers and stubs."""
    state = state_of(function)
    return state.signature, state.doc


def is_compiled(value: object) -> bool:
    """Whether a value is a compiled function of ferrule."""
    return isinstance(value, tvm_ffi.Function) and STATE in getattr(value, "__dict__", ())
