"""Signatures of overloaded functions: the arguments of a call choose the candidate that runs.

An `Overloads` is itself a signature.  Its parameters hold what a call needs before a candidate is
chosen: names, defaults, and whether an argument is a tensor.  The signatures of the candidates say
what the wrapper checks.

Invariants (ValueError where they fail): all candidates have the same defaults; one that has none
for a parameter does not take the others' value there.  Candidates with different numbers of
parameters have no defaults.  Candidates with the same number of parameters
have the same positional-only count and the same keyword-only names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import field

from ferrule.specs.deferred import dataclass
from ferrule.specs.dtypes import DType, Float64, Int64, Uint64
from ferrule.specs.expr import sym_int64
from ferrule.specs.params import (
    REQUIRED,
    AnyValue,
    Array,
    Constant,
    Elements,
    NoneValue,
    Object,
    Optional,
    Pairs,
    Param,
    Plain,
    Pointer,
    Scalar,
    Shape,
    Tensor,
    Tuple,
    Union,
)
from ferrule.specs.signature import Signature


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Overloads(Signature):
    """The signature of an overloaded function: a call runs the first candidate that accepts it.

    `shown` replaces the list of candidates in messages where it is clearer, for example for one
    function that is compiled for several dtypes.  `others` maps each number of arguments that the
    first candidate does not take to the signature of calls with that number.
    """

    candidates: tuple[Signature, ...] = ()
    shown: str | None = None
    others: dict[int, Overloads] = field(default_factory=dict, repr=False)

    def __init__(
        self, name: str, candidates: Sequence[Signature], shown: str | None = None
    ) -> None:
        candidates = _checked(name, candidates)
        put = object.__setattr__
        put(self, "candidates", tuple(each.renamed(name) for each in candidates))
        put(self, "shown", shown)
        _check_defaults(name, self.candidates)
        _check_same_ways(name, self.candidates)
        first, *rest = dict.fromkeys(len(each.arguments) for each in self.candidates)
        others = {count: Overloads(name, _with(self.candidates, count)) for count in rest}
        put(self, "others", others)
        put(self, "name", name)
        put(self, "params", _merged_params(_with(self.candidates, first)))
        put(self, "result", _merged_result(self.candidates))
        unnamed, positional, _ = _ways(_with(self.candidates, first)[0])
        put(self, "positional_only", unnamed)
        put(self, "keyword_only", first - positional)
        put(self, "requires", ())
        Signature.__post_init__(self)

    def __str__(self) -> str:
        if self.shown is not None:
            return self.name + self.shown
        return " | ".join(map(str, self.candidates))

    @property
    def ways(self) -> tuple[Signature, ...]:
        """The candidates."""
        return self.candidates

    def required(self) -> list[str]:
        """The requirements of all candidates."""
        return list(dict.fromkeys(text for each in self.candidates for text in each.required()))

    def kind(self, param: Param, *, full: bool = False) -> str:
        """The kinds that the candidates accept for an argument, joined by `|`."""
        position = self.arguments.index(param)
        same = _with(self.candidates, len(self.arguments))
        texts = (each.kind(each.arguments[position], full=full) for each in same)
        return " | ".join(dict.fromkeys(texts))

    def kind_of_result(self, *, full: bool = False) -> str:
        """The kinds of results that the candidates return, joined by `|`."""
        texts = (each.kind_of_result(full=full) for each in self.candidates)
        return " | ".join(dict.fromkeys(texts))

    def text(self) -> str:
        """One line for each candidate, after a comment line with `shown` if there is one."""
        head = [] if self.shown is None else [f"# {self.shown}"]
        return "\n".join([*head, *(each.text() for each in self.candidates)])

    def renamed(self, name: str) -> Overloads:
        """The same candidates under another name."""
        return Overloads(name, self.candidates, self.shown)

    def altered(self, **values: object) -> Signature:
        """TypeError: the candidates determine the parameters, so change the candidates."""
        raise TypeError(f"{self.name}: alter the candidates of an overload")

    __hash__ = Signature.__hash__


def read_overloads(text: str, read: Callable[[str], Signature]) -> Overloads:
    """Parse a `text()`; `read` parses the line of one candidate."""
    lines = text.split("\n")
    shown = lines.pop(0).removeprefix("# ") if lines[0].startswith("# ") else None
    candidates = [read(line) for line in lines]
    return Overloads(candidates[0].name, candidates, shown)


def _checked(name: str, candidates: object) -> tuple[Signature, ...]:
    """The signatures.  Raises TypeError for anything else, ValueError for an empty list."""
    if not isinstance(candidates, Iterable):
        raise TypeError(f"{name}: candidates must be in a list, but got {candidates!r}")
    listed = tuple(candidates)
    for candidate in listed:
        if not isinstance(candidate, Signature):
            raise TypeError(f"{name}: a candidate must be a Signature, but got {candidate!r}")
    if not listed:
        raise ValueError(f"{name}: an overload has at least one candidate")
    return listed


def _check_defaults(name: str, candidates: Sequence[Signature]) -> None:
    """ValueError unless all candidates have the same defaults, or do not take them.

    The call fills in defaults before it chooses a candidate, so they cannot depend on the choice.
    """
    defaults = [
        tuple((type(param.default), param.default) for param in each.arguments)
        for each in candidates
    ]
    if len({len(each) for each in defaults}) > 1:
        defaults = [tuple(pair for pair in each if pair[1] is not REQUIRED) for each in defaults]
        if any(defaults):
            raise ValueError(
                f"{name}: candidates with different numbers of parameters cannot have defaults; "
                f"make one candidate for each number"
            )
    elif not all(map(_agree, zip(*(each.arguments for each in candidates), strict=True))):
        raise ValueError(f"{name}: the candidates differ in their defaults; give all the same ones")


def _agree(params: Sequence[Param]) -> bool:
    """Whether the defaults of one parameter are the same, and candidates without one refuse it."""
    default = _default_of(params)
    return all(
        _refuses(each, default)
        if each.default is REQUIRED and default is not REQUIRED
        else (type(each.default), each.default) == (type(default), default)
        for each in params
    )


def _default_of(params: Sequence[Param]) -> object:
    return next((each.default for each in params if each.default is not REQUIRED), REQUIRED)


def _refuses(param: Param, value: object) -> bool:
    """Whether a parameter surely does not take this value: a tensor no None, a constant nothing but
    its own."""
    if isinstance(param, Constant):
        return type(value) is not type(param.value) or value != param.value
    return value is None and isinstance(param, Tensor | Scalar | Shape)


def _ways(signature: Signature) -> tuple[int, int, tuple[str, ...]]:
    """How many arguments are positional-only, how many positional, and the keyword-only names."""
    named = tuple(param.name for param in signature.arguments[signature.positional :])
    return signature.unnamed, signature.positional, named


def _check_same_ways(name: str, candidates: Sequence[Signature]) -> None:
    found: dict[int, tuple[int, int, tuple[str, ...]]] = {}
    for each in candidates:
        ways = _ways(each)
        if found.setdefault(len(each.arguments), ways) != ways:
            raise ValueError(
                f"{name}: the candidates differ in which parameters position alone or names alone "
                f"give; write / and * at the same places, with the same names behind *"
            )


# ---- what candidates have in common ----


def _with(candidates: Sequence[Signature], count: int) -> list[Signature]:
    """The candidates that take `count` arguments."""
    return [each for each in candidates if len(each.arguments) == count]


def _merged_params(candidates: Sequence[Signature]) -> tuple[Param, ...]:
    """The merged parameters of candidates with equal counts; a name that differs is no keyword."""
    columns = list(zip(*(each.arguments for each in candidates), strict=True))
    names = [dict.fromkeys(param.name for param in column) for column in columns]
    taken = {name for column in names for name in column}
    params = []
    for position, column in enumerate(columns):
        name = column[0].name if len(names[position]) == 1 else f"arg{position}"
        while len(names[position]) > 1 and name in taken:
            name += "_"
        params.append(_defaulted(_merged(name, column), _default_of(column)))
    return tuple(params)


def _defaulted(param: Param, default: object) -> Param:
    if default is REQUIRED or isinstance(param, Tensor):
        return param
    return _changed(param, default=default)


def _changed(param: Param, **values: object) -> Param:
    """A copy with some of its fields changed."""
    changed = copy(param)
    for name, value in values.items():
        object.__setattr__(changed, name, value)
    return changed


def _merged(name: str, params: Sequence[Param]) -> Param:
    """A parameter that accepts the values of all of these, without their sizes and dtypes."""
    members = list(_members(params))
    has_none = any(isinstance(param, Optional) for param in params)
    kinds: dict[type[Param], list[Param]] = {}
    for member in members:
        kinds.setdefault(type(member), []).append(member)
    found = [_alike(name, alike) for alike in kinds.values()]
    joined = found[0] if len(found) == 1 else _union(name, found)
    if not has_none or isinstance(joined, (AnyValue, NoneValue)):
        return joined
    return Optional(name, joined)


def _members(params: Sequence[Param]) -> Iterator[Param]:
    for param in params:
        match param:
            case Optional(item=item):
                yield from _members((item,))
            case Union(members=members):
                yield from members
            case _:
                yield param


def _union(name: str, members: Sequence[Param]) -> Param:
    try:
        return Union(name, tuple(members))
    except ValueError:
        return AnyValue(name)


def _alike(name: str, params: Sequence[Param]) -> Param:
    """Parameters of one kind as one."""
    first = params[0]
    match first:
        case Tensor():
            return _tensor(name, [each for each in params if isinstance(each, Tensor)])
        case Scalar():
            return _scalar(name, [each.dtype for each in params if isinstance(each, Scalar)])
        case Shape():
            ranks = {len(each.dims) for each in params if isinstance(each, Shape)}
            if len(ranks) > 1:
                return AnyValue(name)
            return Shape(name, tuple(sym_int64() for _ in first.dims), first.kind)
        case Tuple(items=items, fields=fields):
            shapes = {_fields(each) for each in params}
            if len(shapes) > 1:
                return AnyValue(name)
            columns = zip(*(each.items for each in params if isinstance(each, Tuple)), strict=True)
            named = zip(items, columns, strict=True)
            return Tuple(name, tuple(_merged(item.name, column) for item, column in named), fields)
        case Elements() | Pairs():
            return type(first)(name)
        case Pointer():
            return Pointer(name)
        case Plain():
            return _changed(first, name=name, default=REQUIRED)
    bare = [_changed(each, name=name, default=REQUIRED) for each in params]
    return bare[0] if all(each == bare[0] for each in bare) else AnyValue(name)


def _fields(param: Param) -> tuple[object, ...]:
    assert isinstance(param, Tuple)
    return param.fields, *(item.name for item in param.items)


def _tensor(name: str, tensors: Sequence[Tensor]) -> Tensor:
    first = tensors[0]
    read_only = all(each.read_only for each in tensors)
    owning = any(each.owning for each in tensors)
    dtype, device = first.dtype, first.device
    return Tensor(name, (), dtype, device=device, read_only=read_only, owning=owning, packed=False)


def _scalar(name: str, dtypes: Sequence[DType]) -> Param:
    """One number that can be any of these."""
    if len(set(dtypes)) == 1:
        return Scalar(name, dtypes[0])
    floats = [dtype for dtype in dtypes if dtype.kind == "float"]
    whole = Scalar(name, Uint64 if Uint64 in dtypes else Int64)
    if not floats:
        return whole
    real = Scalar(name, Float64)
    return real if len(floats) == len(dtypes) else Union(name, (whole, real))


def _merged_result(candidates: Sequence[Signature]) -> Param | None:
    """The result as far as the call must know it: mainly whether it can be a container."""
    results = [each.result for each in candidates if each.result is not None]
    if not results:
        return None
    if len({each.kind_of_result(full=True) for each in candidates}) == 1:
        return results[0]
    if len(results) == len(candidates) and all(isinstance(each, Scalar) for each in results):
        found = _alike("result", results)
        if isinstance(found, Scalar):
            return found
    can_be_container = any(isinstance(each, (Tuple, Elements)) for each in results)
    return Array("result") if can_be_container else Object("result", "ffi.Object")
