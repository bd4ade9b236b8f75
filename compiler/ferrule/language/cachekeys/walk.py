"""`Walk`: from functions and values to the parts of a key.

It follows what a text can name: globals, variables of closures, attributes of modules and classes,
defaults, annotations, and everything in these values.  That is more than a compilation reads, and
never less: what could be read by a name that no text has, or done without a trace in any value,
makes the compilation uncacheable.  Values are compared by what they are, functions and classes
by their text, and objects of the user's classes by all their attributes.
"""

from __future__ import annotations

import abc
import collections
import contextlib
import dataclasses
import enum
import functools
import os
import sys
import types
import typing
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

import numpy as np
import tvm_ffi

from ferrule.compiler.cache.encoding import MOST_ITEMS, PLAIN, Encoder, module_of, named, sized
from ferrule.compiler.cache.keys import Key, Uncacheable
from ferrule.language.cachekeys import libraries
from ferrule.language.cachekeys.facts import READS_ATTRIBUTES, Facts, facts_of, is_optimized
from ferrule.language.dependencies.snapshots import snapshot
from ferrule.language.dependencies.witness import Outer, Witness, is_library
from ferrule.language.marks import JitFunction, KernelFunction
from ferrule.language.source import display_path
from ferrule.runtime import Function
from ferrule.runtime.calls.plan import origin_of
from ferrule.specs import DType
from ferrule.specs.deferred import dataclass

_MISSING: Final = object()
_NOT_TOLD: Final = frozenset(
    {
        *("__dict__", "__weakref__", "__module__", "__abstractmethods__", "_abc_impl"),
        *("__dataclass_params__", "__firstlineno__", "__static_attributes__", "__annotate__"),
        *("__annotate_func__", "__annotations_cache__", "__annotations__", "__slots__"),
        *("__dataclass_fields__", "__qualname__", "__orig_bases__", "__parameters__"),
        *("_member_map_", "_value2member_map_", "_unhashable_values_", "_hashable_values_"),
        *("_unhashable_values_map_", "_member_names_", "__signature__", "_sort_order_"),
    }
)
"""Entries of a class that say nothing beside the others, or are told in another way."""
_METACLASSES: Final = (type, enum.EnumMeta)


@dataclass(slots=True)
class _Owner:
    """A module or a class of the user's, and which of its attributes are told."""

    value: Any
    told: set[str] = dataclasses.field(default_factory=set)


class Walk(Encoder):
    """Collects the parts of one key.  `witness`, if there is one, records what was read."""

    def __init__(self, witness: Witness | None = None, *, places: bool = True) -> None:
        """`places`: whether the code tells the paths of its files."""
        if is_optimized():
            raise Uncacheable("Python runs with -O, so functions are not what their texts say")
        super().__init__()
        self.parts: Final[dict[str, bytes]] = {}
        self._witness: Final = witness
        self._places: Final = places
        self._functions: Final[list[types.FunctionType]] = []
        self._followed: Final[list[types.FunctionType]] = []
        self._owners: Final[list[_Owner]] = []
        self._additions: Final = libraries.Additions()
        self._attributes: Final[set[str]] = set()
        self._scopes: Final[dict[int, str]] = {}
        self._reflects = ""
        self._templates = False
        self._asks = False
        """Whether a text asks what functions and classes say of themselves."""

    def add(self, name: str, value: Any) -> None:
        """A part of the key for a value."""
        try:
            self.parts[name] = self.encode(value)
        except Uncacheable as why:
            raise Uncacheable(f"{name}: {why}") from None
        except RecursionError:
            raise Uncacheable(f"{name} is nested too deeply") from None

    def finish(self) -> dict[str, bytes]:
        """Follow everything that was named so far; the parts."""
        while self._functions or self._more():
            while self._functions:
                self._function(self._functions.pop(0))
        reflects = self._reflects or ("format" if self._formats() else "")
        if reflects and self._owners:
            raise Uncacheable(f"{reflects} reads attributes by names that no text has")
        if self._witness is not None:
            self._watch_owners(self._witness)
        return self.parts

    def _watch_owners(self, witness: Witness) -> None:
        """Record what functions, classes and modules say of themselves, when all names are
        known."""
        names = frozenset(self._attributes)
        for owner in self._owners:
            if isinstance(owner.value, types.ModuleType):
                witness.add_module(owner.value, names)
            else:
                witness.add_class(owner.value, not self._asks)
        self._additions.watch(witness, names)
        for function in self._followed:
            witness.add_itself(function, not self._asks)

    def _formats(self) -> bool:
        """Whether a text for `format` may read attributes."""
        if not {"format", "format_map"} & self._attributes:
            return False
        values = (data for name, data in self.parts.items() if not name.startswith("the text of "))
        return self._templates or any(
            READS_ATTRIBUTES.search(data.decode("latin-1")) for data in values
        )

    # ---- values ----

    def _compound(self, value: Any, kind: type) -> bytes:
        told = super()._compound(value, kind)
        self._additions.reach(value)
        return told

    def special(self, value: Any) -> bytes:
        """A value that is neither plain nor one of ferrule's records."""
        kind = type(value)
        if isinstance(value, types.FunctionType):
            return self._generated(value) if _is_generated(value) else self._reference(value)
        if kind.__base__ in (JitFunction, KernelFunction):  # of `decorators`, and no others
            return self._marked(value, kind)
        if isinstance(value, enum.Enum):
            return self._member(value, kind)
        if isinstance(value, np.generic | np.ndarray):
            return self._array(value)
        if isinstance(value, np.dtype):
            return self._dtype(value)
        if isinstance(value, types.ModuleType):
            return self._module(value)
        if isinstance(value, Function):
            return self._compiled(value)
        if isinstance(value, types.BuiltinFunctionType | np.ufunc):
            return self._builtin(value)
        return self._of_python(value, kind)

    def _of_python(self, value: Any, kind: type) -> bytes:
        """A value of a class of Python's library, or of the user's."""
        if kind is functools.partial:
            held = [value.func, value.args, value.keywords, vars(value)]
            return b"partial" + self.items("", held)
        if kind is types.MethodType:
            return b"method" + self.items("", [value.__self__, value.__func__])
        if kind in (staticmethod, classmethod):
            return kind.__name__.encode() + self.encode(value.__func__)
        if kind in _PROPERTIES:
            return b"property" + self.items("", [value.fget, value.fset, value.fdel])
        if kind is dataclasses.Field:
            held = [value.name, value.default, value.default_factory, value.init, value.kw_only]
            held += [value.repr, value.hash, value.compare, value.metadata]
            return b"field" + self.items("", [*held, self._annotation(value.type)])
        if kind is collections._tuplegetter:  # type: ignore[attr-defined]
            return b"item" + self.encode(value.__reduce__()[1])
        if kind is types.SimpleNamespace:
            return b"namespace" + self._attributes_of(value)
        if kind is range or kind is slice:
            return kind.__name__.encode() + self.items("", [value.start, value.stop, value.step])
        if kind.__module__ == "dataclasses":  # its marks for what is missing
            return b"dataclasses" + self.encode(kind.__name__)
        if isinstance(value, _DESCRIPTORS):
            return b"of " + self.encode_class(value.__objclass__) + self.encode(value.__name__)
        if kind.__module__ == "torch" and kind.__name__ == "dtype":
            self._package("torch")
            return b"torch" + self.encode(str(value))
        if isinstance(value, _ALIASES):
            origin, inner = typing.get_origin(value), typing.get_args(value)
            return b"alias" + self.items("", [origin, *map(self._annotation, inner)])
        if kind is typing.TypeVar:
            limits = [value.__bound__, value.__constraints__]
            return b"variable" + self.encode(repr(value)) + self.items("", limits)
        if kind is typing.NewType:
            return b"new type" + self.items("", [value.__name__, value.__supertype__])
        if kind.__module__ == "typing":
            return b"typing" + self.encode(repr(value))
        return self._object(value, kind)

    def _array(self, value: Any) -> bytes:
        if type(value) is not np.ndarray and not isinstance(value, np.generic):
            raise Uncacheable(f"it holds a {type(value).__name__}")
        if value.dtype.hasobject or value.nbytes > MOST_ITEMS * 256:
            raise Uncacheable("it holds an array of objects, or a very large one")
        number, new = self.number(value)
        if not new:
            return b"again#%d" % number
        self._printed()
        facts = self.items("", [value.shape, value.strides, value.flags.writeable])
        scalar = b"array" if type(value) is np.ndarray else b"scalar"
        return scalar + self._dtype(value.dtype) + facts + sized(b"", value.tobytes())

    def _printed(self) -> None:
        """How NumPy writes its values as texts, which a program may choose."""
        self.parts["how NumPy prints"] = repr(np.get_printoptions()).encode()
        if self._witness is not None:
            self._witness.add_fact("printed", np, np.get_printoptions)

    def _dtype(self, value: Any) -> bytes:
        said = repr(value) if value.names else value.str
        return b"dtype" + self.encode(said) + self.encode_class(value.type)

    def _compiled(self, value: Function) -> bytes:
        key = getattr(origin_of(value), "key", None)
        if not isinstance(key, Key):
            raise Uncacheable(f"the function {value.name} is none that the cache keeps")
        return b"compiled" + key.digest.encode()

    def _builtin(self, value: Any) -> bytes:
        owner = getattr(value, "__self__", None)
        if id(value) in libraries.REFLECTION:
            self._reflects = value.__name__
        elif isinstance(owner, type):  # object.__new__ and the like
            return b"builtin" + self.encode_class(owner) + self.encode(value.__name__)
        elif owner is not None and not isinstance(owner, types.ModuleType):
            if self._witness is not None:
                self._witness.add_fact("content", owner, lambda: snapshot(owner))
            return b"bound" + self.encode(owner) + self.encode(value.__name__)
        elif not libraries.allowed_function(value):
            raise Uncacheable(f"it may call {named(value)}, whose result no key has")
        return b"builtin" + self.encode(named(value))

    def _object(self, value: Any, kind: type) -> bytes:
        """An object of a user's class: its attributes, and the value that it is itself."""
        if libraries.is_ours(kind.__module__) and not _state(value):
            return b"ours" + self.encode(named(kind))
        if is_library(kind) or not _is_plain_class(kind):
            raise Uncacheable(f"it holds a {named(kind)}, whose state nothing tells")
        number, new = self.number(value)
        if not new:
            return b"object#%d" % number
        own = [told(value) for base, told in _VALUES.items() if isinstance(value, base)]
        return (
            b"object" + self.encode_class(kind) + self._attributes_of(value) + self.items("", own)
        )

    def _attributes_of(self, value: Any, *known: str) -> bytes:
        """The attributes that an object has of its own, but for those that are known."""
        state = {name: held for name, held in _state(value) if name not in known}
        if self._witness is not None:
            self._witness.add_state(value)
            for name, held in state.items():
                self._witness.add_attribute(value, name, held)
        return self.items("", [part for pair in state.items() for part in pair])

    def _member(self, value: enum.Enum, kind: type) -> bytes:
        """A member of an enumeration; what it has beside its value is told with its class."""
        return self.encode_class(kind) + self.encode(value.name) + self.encode(value.value)

    def _marked(self, value: Any, kind: type) -> bytes:
        """A kernel or a host function, and the attributes that the user gave it."""
        own = vars(value.function)

        def rest() -> dict[str, Any]:
            mine = vars(value).items()
            return {k: v for k, v in mine if k not in _OF_MARKED and own.get(k, _MISSING) is not v}

        if self._witness is not None:
            self._witness.add_fact("marked", value, lambda: (value.function, snapshot(rest())))
        reference = kind.__name__.encode() + self._reference(value.function)
        return reference + self.items("", [part for pair in rest().items() for part in pair])

    def _generated(self, value: types.FunctionType) -> bytes:
        """A function that Python's library made around others."""
        if libraries.reads_by_name(value):
            raise Uncacheable(f"it may call {named(value)}, whose result no key has")
        held = [cell.cell_contents for cell in value.__closure__ or ()]
        return b"generated" + self.encode(named(value)) + self.items("", held)

    # ---- functions ----

    def _reference(self, function: types.FunctionType) -> bytes:
        """A function, whose text is a part of its own."""
        if is_library(function):
            if not libraries.allowed_function(function):
                raise Uncacheable(f"it may call {named(function)}, whose result no key has")
            return b"library" + self.encode(named(function))
        number, new = self.number(function)
        if new:
            self._functions.append(function)
        return b"function#%d" % number

    def function(self, function: Any) -> None:
        """The function that is compiled."""
        self.parts["what is compiled"] = self._reference(function)

    def _function(self, function: types.FunctionType) -> None:
        number, _ = self.number(function)
        self._followed.append(function)
        name = named(function)
        where = f"{name} (#{number})" if f"the text of {name}" in self.parts else name
        facts = facts_of(function)
        if self._witness is not None:
            self._witness.add_function(function)
        hidden = libraries.HIDDEN & facts.attributes
        if hidden:
            raise Uncacheable(f"{name} uses {min(hidden)}, which gives what no key has")
        self._reflects = self._reflects or min(libraries.REFLECTING & facts.attributes, default="")
        self._templates = self._templates or facts.formats
        if not _is_of_dataclass(function):
            self._asks |= not _OF_THEMSELVES.isdisjoint(facts.attributes)
        path = b""
        if self._places:
            path = display_path(function.__code__.co_filename).encode("utf-8", "surrogatepass")
        self.parts[f"the text of {where}"] = b"\0".join((name.encode(), path, facts.text))
        self.add(f"the name of {where}", [function.__name__, function.__doc__])
        self.add(f"the defaults of {where}", [function.__defaults__, function.__kwdefaults__])
        self._annotations(where, function)
        rest = {k: v for k, v in vars(function).items() if k != "__wrapped__"}
        if rest:
            self.add(f"the attributes of {where}", rest)
        self._attributes.update(facts.attributes)
        self._names(where, function, facts)

    def _annotations(self, where: str, function: types.FunctionType) -> None:
        try:
            known = dict(function.__annotations__)
        except Exception as error:  # since Python 3.14 they are evaluated here
            raise Uncacheable(f"the annotations of {where} cannot be read: {error!r}") from None
        told = {name: self._annotation(value) for name, value in known.items()}
        self.add(f"the annotations of {where}", told)

    def _annotation(self, value: Any) -> Any:
        """An annotation; any that means nothing to ferrule is told by its name."""
        if isinstance(value, type) and _root(value) in ("torch", "numpy", "tvm_ffi"):
            return "class", named(value)
        return value

    def _names(self, where: str, function: types.FunctionType, facts: Facts) -> None:
        outer = None if self._witness is None else Outer(function)
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        for name in sorted(facts.names):
            value, kind = _looked_up(function, cells, name)
            if outer is not None:
                outer.get(name)
            if kind == "builtin":
                self._watch(_builtins_of(function), name)
                self._check_builtin(where, name, value)
            elif value is _MISSING:
                continue
            else:
                scope = where if kind == "variable" else self._scope(function)
                if kind == "variable" and name.startswith(_OF_DATACLASSES):
                    value = self._annotation(value)
                self._named_value(f"the {kind} {name} of {scope}", name, value, facts)
        if outer is not None and self._witness is not None:
            self._witness.add_names(outer)

    def _scope(self, function: types.FunctionType) -> str:
        """A name for the globals of a function, which no other globals have."""
        held = function.__globals__
        number, new = self.number(held)
        if new:
            name = module_of(function)
            taken = name in self._scopes.values()
            self._scopes[id(held)] = f"{name} (#{number})" if taken else name
        return self._scopes[id(held)]

    def _named_value(self, part: str, name: str, value: Any, facts: Facts) -> None:
        """A value that a function names; of a module, also its attributes that are named."""
        if part in self.parts and not isinstance(value, types.ModuleType):
            return
        if not isinstance(value, types.ModuleType) or libraries.is_user_module(value):
            self.add(part, value)
            return
        where = value.__name__
        self.parts[part] = where.encode()
        if name in facts.bare:
            self._additions.reach(value)
        if where == "numpy":
            self._printed()
        self._package(where.partition(".")[0])
        if name in facts.bare and not libraries.is_pure(where) and where != "ferrule":
            raise Uncacheable(f"{part}: {where} is used whole, and not by names that it has")
        for base, attribute in sorted(facts.pairs):
            if base == name:
                self._of_library(part, value, attribute, facts)

    def _of_library(self, part: str, module: types.ModuleType, name: str, facts: Facts) -> None:
        if not libraries.allowed_of(module, name):
            what = f"{module.__name__}.{name}"
            raise Uncacheable(f"{part}: {what} may have another result each time")
        value = getattr(module, name, None)
        self._watch(vars(module), name)
        if isinstance(value, type):
            self._check_registered(value)
        if isinstance(value, types.ModuleType) and libraries.is_pure(value.__name__):
            for inner in sorted(facts.attributes & vars(value).keys()):
                self._of_library(f"{part}.{name}", value, inner, facts)
        elif module.__name__ == "builtins":
            self._check_builtin(part, name, value)
        else:
            self._addition(f"{module.__name__}.{name}", value)

    def _addition(self, part: str, value: Any) -> None:
        """What a library has under a name, which a program may have put there."""
        self._additions.reach(value)
        own = libraries.own_name(value)
        if own is None:
            self.add(part, value)
        else:
            self.parts[part] = own.encode()

    def _watch(self, namespace: Any, name: str) -> None:
        if self._witness is not None and type(namespace) is dict:
            self._witness.add_dict_item(namespace, name)

    def _check_builtin(self, where: str, name: str, value: Any) -> None:
        if id(value) in libraries.REFLECTION:
            self._reflects = name
        elif name == "hash" and where.partition(" ")[0].endswith(".__hash__"):
            return  # what it gives orders nothing, and is compared in this process alone
        elif type(value) in PLAIN:
            self.add(f"the builtin {name}", value)
        elif id(value) not in libraries.BUILTINS:
            raise Uncacheable(f"{where} calls {name}, whose effect no key has")

    # ---- classes and modules ----

    def encode_class(self, value: type) -> bytes:
        self._check_registered(value)
        self._additions.reach(value)
        if isinstance(value, DType) or libraries.is_told_by_name(value):
            self._package(_root(value))
            return b"class" + self.encode(named(value))
        if isinstance(value, type) and issubclass(value, tvm_ffi.Object):
            raise Uncacheable(f"{named(value)} is registered with tvm-ffi, which knows its fields")
        if is_library(value) or _root(value) == "torch":
            raise Uncacheable(f"it names the class {named(value)}, whose objects have any state")
        number, new = self.number(value)
        if new:
            self._add_class(value, number)
        return b"class#%d" % number

    def _check_registered(self, value: type) -> None:
        """Refuse a class whose `isinstance` says yes to other classes of the user's."""
        if isinstance(value, abc.ABCMeta):
            if self._witness is not None:
                self._witness.add_registered()
            if libraries.has_registered(value):
                raise Uncacheable(f"classes are registered with {named(value)}")

    def _add_class(self, value: type, number: int) -> None:
        meta = type(value)
        if meta not in _METACLASSES and meta.__module__ != "abc":
            raise Uncacheable(f"the class {named(value)} is made by a class of its own")
        where = f"the class {named(value)}"
        where = f"{where} (#{number})" if where in self.parts else where
        self.parts[where] = b""  # while its bases are told, it is known
        self.add(where, [named(value), value.__name__, list(value.__bases__), meta.__name__])
        self._annotated(where, value)
        fields = vars(value).get("__dataclass_fields__")
        if fields is not None:
            how = repr(vars(value).get("__dataclass_params__"))
            self.add(f"the fields of {where}", [how, *fields, *fields.values()])
        if isinstance(value, enum.EnumMeta):
            members = vars(value)["_member_map_"]
            self.add(f"the members of {where}", [(k, each.value) for k, each in members.items()])
            told = [self._attributes_of(each, *_OF_MEMBERS) for each in members.values()]
            self.parts[f"the attributes of the members of {where}"] = b"".join(told)
        self._owners.append(_Owner(value))

    def _annotated(self, where: str, value: type) -> None:
        known = vars(value).get("__annotations__", {})
        self.add(f"the annotations of {where}", {k: self._annotation(v) for k, v in known.items()})

    def _module(self, value: types.ModuleType) -> bytes:
        if not libraries.is_user_module(value):
            if libraries.is_pure(value.__name__) or value.__name__ == "ferrule":
                self._additions.reach(value)
                return b"module" + self.encode(value.__name__)
            raise Uncacheable(f"the module {value.__name__} is used whole")
        if "__getattr__" in vars(value) or type(value) is not types.ModuleType:
            raise Uncacheable(f"the module {value.__name__} makes attributes when they are read")
        number, new = self.number(value)
        if new:
            self._owners.append(_Owner(value))
        return b"module#%d" % number + self.encode(value.__name__)

    def _more(self) -> bool:
        """Tell the attributes of modules and classes that any text names; whether there were
        any."""
        found = False
        for owner in list(self._owners):
            for name in sorted(self._wanted(owner)):
                owner.told.add(name)
                found = True
                self._attribute(owner.value, name)
        for part, value, is_lazy in self._additions.named_by(self._attributes):
            found = True
            if is_lazy and libraries.own_name(value) is not None:
                self._additions.reach(value)
            else:
                self._addition(part, value)
        return found

    def _wanted(self, owner: _Owner) -> set[str]:
        names = set(vars(owner.value))
        named = self._attributes & names
        wanted = set[str]()
        if isinstance(owner.value, type):
            wanted |= {n for n in names if n[:2] == "__" == n[-2:] and n not in _NOT_TOLD}
            if isinstance(owner.value, enum.EnumMeta):
                wanted -= set(owner.value.__members__)
                wanted = {n for n in wanted if n not in _OF_ENUMS}
        return (wanted - _NOT_TOLD | named) - owner.told

    def _attribute(self, owner: Any, name: str) -> None:
        value = vars(owner)[name]
        if self._witness is not None:
            if isinstance(owner, type):
                self._witness.add_member(owner, name)
            else:
                self._witness.add_attribute(owner, name, value)
        number, _ = self.number(owner)
        self.add(f"{named(owner)}.{name} (#{number})", value)

    def _package(self, root: str) -> None:
        """The version of a package whose values are named."""
        if root in ("builtins", "ferrule") or root in sys.stdlib_module_names:
            return
        version = getattr(sys.modules.get(root), "__version__", None)
        self.parts[f"the version of {root}"] = str(version).encode()


_OF_DATACLASSES: Final = ("_type_", "__dataclass_type_")
"""Prefixes of variables of the methods that dataclasses make, which hold annotations."""
_GENERATING: Final = tuple(
    os.path.join(os.path.dirname(os.__file__), name)
    for name in ("dataclasses.py", "reprlib.py", "enum.py", "typing.py", "collections/__init__.py")
)
_DESCRIPTORS: Final = (
    types.MemberDescriptorType,
    types.GetSetDescriptorType,
    types.WrapperDescriptorType,
    types.MethodDescriptorType,
    types.ClassMethodDescriptorType,
)
_ALIASES: Final = (
    types.GenericAlias,
    types.UnionType,
    type(typing.Sequence[int]),
    type(typing.Optional["Walk"]),
)
_PROPERTIES: Final = (property, types.DynamicClassAttribute, getattr(enum, "property", None))
_VALUES: Final[Mapping[type, Callable[[Any], Any]]] = {
    each: each for each in (int, float, str, bytes, tuple, list, dict)
}
_OF_THEMSELVES: Final = frozenset({"__doc__", "__module__", "__name__", "__qualname__"})
"""What functions and classes say of themselves, and code seldom asks."""
_OF_MARKED: Final = frozenset({*functools.WRAPPER_ASSIGNMENTS, "__wrapped__", "function"}).union(
    ("_compiled", "_lock")
)
"""Attributes of each kernel and host function."""
_OF_MEMBERS: Final = ("_value_", "_name_", "__objclass__", "_sort_order_")
"""Attributes of each member of an enumeration."""
_OF_ENUMS: Final = frozenset({"__new__", "__format__", "__str__", "__repr__", "__reduce_ex__"})


def _looked_up(
    function: types.FunctionType, cells: Mapping[str, types.CellType], name: str
) -> tuple[Any, str]:
    """The value of a name around a function, and where it is from."""
    if name in cells:
        try:
            return cells[name].cell_contents, "variable"
        except ValueError:  # its function has not assigned it yet
            return _MISSING, "variable"
    if name in function.__globals__:
        return function.__globals__[name], "global"
    table = _builtins_of(function)
    return table.get(name, _MISSING), "builtin" if name in table else "global"


def _builtins_of(function: types.FunctionType) -> dict[str, Any]:
    """The names that a function finds where its module has none."""
    known = function.__globals__.get("__builtins__")
    return vars(known) if isinstance(known, types.ModuleType) else known or {}


def _is_generated(function: types.FunctionType) -> bool:
    """Whether Python's library made this as a part of a user's class."""
    return function.__code__.co_filename in _GENERATING


def _is_of_dataclass(function: types.FunctionType) -> bool:
    """Whether this is a method without a text, such as the `__repr__` that a dataclass has, which
    asks for the name of its class."""
    return function.__code__.co_filename == "<string>" and function.__name__[:2] == "__"


def _is_plain_class(kind: type) -> bool:
    """Whether attributes and, at most, a plain value are all that objects of a class have."""
    for base in kind.__mro__:
        if base is object or base in _VALUES or base.__module__ in ("typing", "abc"):
            continue
        # Py_TPFLAGS_HEAPTYPE of object.h: a class that was made by Python code.
        if is_library(base) or not base.__flags__ & (1 << 9):
            return False
        if {"__getattr__", "__getattribute__"} & vars(base).keys():
            return False
    return True


def _state(value: Any) -> Collection[tuple[str, Any]]:
    """The attributes of an object, in its dict and in slots."""
    found = dict(getattr(value, "__dict__", {}))
    for base in type(value).__mro__:
        for name, slot in vars(base).items():
            if type(slot) is types.MemberDescriptorType:
                with contextlib.suppress(AttributeError):  # it was never assigned
                    found[name] = slot.__get__(value)
    return found.items()


def _root(value: Any) -> str:
    return str(getattr(value, "__module__", "")).partition(".")[0]
