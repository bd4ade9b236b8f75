"""What stands where in a call: a parameter, its argument, and what messages call it.

`present` walks to every parameter without parts of its own that the call has, through tuples,
optionals, unions and containers; `chosen` says which member of a union came.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ferrule.specs import Signature
from ferrule.specs import params as kinds
from ferrule.specs.params import Param
from oracle.arguments import (
    Argument,
    Big,
    Blob,
    Dev,
    Dtype,
    Handle,
    Items,
    NullView,
    Numbers,
    Opaque,
    Pairs,
    Text,
    View,
)


@dataclass(frozen=True)
class Where:
    """A place in a call.  `label` is its name in text, `path` its argument and positions in it.

    `contained`: whether it is in a container, whose elements are read while the body runs.
    """

    label: str
    path: tuple[int, ...]
    optional: bool = False
    contained: bool = False

    @property
    def on(self) -> str:
        """How a message says where something is wrong."""
        inside = f"on {self.label} in" if len(self.path) > 1 else "on"
        return f"{inside} argument #{self.path[0]} "

    def named(self, what: str) -> str:
        """How a message about `what` begins."""
        return f"{what} {self.on}"

    def item(self, i: int) -> Where:
        """The item of a tuple."""
        return replace(self, label=f"{self.label}[{i}]", path=(*self.path, i))

    def element(self, i: int) -> Where:
        """The item of a container."""
        return replace(self.item(i), contained=True)

    def part(self, which: str) -> Where:
        """The keys or values of a map."""
        return replace(self, label=f"{self.label}.{which}()")

    def maybe(self) -> Where:
        """The same place, of something that can be absent."""
        return replace(self, optional=True)


@dataclass(frozen=True)
class Site:
    """A parameter that the call has, and its argument."""

    param: Param
    argument: Argument
    where: Where


def tops(signature: Signature, arguments: Sequence[Argument]) -> Iterator[Site]:
    """The parameters that a call gives, with their arguments."""
    given = [p for p in signature.params if not isinstance(p, kinds.EnvStream)]
    for i, (param, argument) in enumerate(zip(given, arguments, strict=True)):
        yield Site(param, argument, Where(param.name, (i,)))


def present(site: Site) -> Iterator[Site]:
    """What is there of one parameter, down to parameters without parts; the argument fits it."""
    match site.param, site.argument:
        case kinds.Tuple(items=items), Items(items=values):
            for i, (item, value) in enumerate(zip(items, values, strict=True)):
                yield from present(Site(item, value, site.where.item(i)))
        case kinds.Optional(item=item), argument:
            if argument is not None:
                yield from present(Site(item, argument, site.where.maybe()))
        case kinds.Union(members=members), argument:
            member = members[chosen(members, argument)]
            yield from present(Site(member, argument, site.where.maybe()))
        case kinds.Array() | kinds.List() | kinds.Map() | kinds.Dict(), _:
            yield site
            for element in elements(site):
                yield from present(element)
        case _:
            yield site


def elements(site: Site) -> Iterator[Site]:
    """The elements of a container that its spec describes."""
    match site.param, site.argument:
        case ((kinds.Array(item=item) | kinds.List(item=item)), Items(items=values)):
            for i, value in enumerate(values):
                if item is not None:
                    yield Site(item, value, site.where.element(i))
        case ((kinds.Map(key=key, value=value) | kinds.Dict(key=key, value=value)), Pairs(pairs)):
            for i, pair in enumerate(pairs):
                for spec, argument, which in zip(
                    (key, value), pair, ("keys", "values"), strict=True
                ):
                    if spec is not None:
                        yield Site(spec, argument, site.where.part(which).element(i))


def chosen(members: Sequence[Param], argument: Argument) -> int:
    """The position of the member of a union that takes this kind of argument, or -1."""
    for i, member in enumerate(members):
        if takes(member, argument):
            return i
    return -1


def takes(param: Param, argument: Argument) -> bool:
    """Whether the kind of an argument is one of the parameter's own.

    None and ints are not of the kind of a pointer or stream, which take them all the same where
    there is no choice.
    """
    is_bool, is_int = isinstance(argument, bool), type(argument) is int
    match param:
        case kinds.Tensor(owning=owning):
            if isinstance(argument, View):
                return argument.owned or not owning
            return isinstance(argument, NullView) and not owning
        case kinds.Scalar(dtype=dtype):
            if isinstance(argument, float):
                return dtype.kind == "float"
            return is_bool or is_int or isinstance(argument, Big)
        case kinds.Shape():
            return isinstance(argument, (Numbers, Items))
        case kinds.Tuple():
            return isinstance(argument, Items)
        case kinds.Pointer() | kinds.Stream():
            return isinstance(argument, Opaque)
        case kinds.Optional(item=item):
            return argument is None or takes(item, argument)
        case kinds.Union(members=members):
            return chosen(members, argument) >= 0
        case kinds.String():
            return isinstance(argument, Text)
        case kinds.Bytes():
            return isinstance(argument, Blob)
        case kinds.DataType():
            return isinstance(argument, (Dtype, Text))
        case kinds.Device():
            return isinstance(argument, (Dev, Text))
        case kinds.Constant(value=value):
            return _takes_constant(value, argument)
        case kinds.AnyValue():
            return True
    return _takes_handle(param, argument)


def _takes_constant(value: object, argument: Argument) -> bool:
    if isinstance(value, str):
        return isinstance(argument, Text)
    if isinstance(value, bool) or isinstance(value, float):
        return type(argument) is type(value)
    return isinstance(argument, (int, Big))


def _takes_handle(param: Param, argument: Argument) -> bool:
    match param, argument:
        case kinds.NoneValue(), None:
            return True
        case kinds.Array(), Items(form="array"):
            return True
        case kinds.List(), Items(form="list"):
            return True
        case kinds.Map(), Pairs(form="map"):
            return True
        case kinds.Dict(), Pairs(form="dict"):
            return True
        case kinds.Function(), Handle(type_key="ffi.Function"):
            return True
        case kinds.Module(), Handle(type_key="ffi.Module"):
            return True
        case kinds.Object(), Handle(type_key=key):
            return not key.startswith("ffi.")
    return False
