"""Loop-carried values: the values of the names that a loop assigns.

A number keeps one dtype in every iteration, and any other value its kind, as in `templates`.  A
name that does not keep its type cannot be read where it might have either.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import field
from typing import Any

from ferrule.compiler.errors import CompileError
from ferrule.language.ir import ops
from ferrule.language.lowering import structures
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.control import ownership, templates
from ferrule.language.lowering.control.assumptions import Assumed, Kept, Leaf, Retry, retype
from ferrule.language.lowering.control.joins import NOTHING, choosable, same, zero
from ferrule.language.lowering.descriptions import describe
from ferrule.language.lowering.numbers import coercion, scalars
from ferrule.language.promotion import weak
from ferrule.language.values import (
    ComplexNumber,
    Handle,
    Maybe,
    Number,
    OneOf,
    TensorView,
    Undefined,
)
from ferrule.specs import DType, Numeric
from ferrule.specs.deferred import dataclass


@dataclass(frozen=True, slots=True)
class Carried:
    """The names that a loop carries with their initial values, and the leaves of these by path."""

    low: Lowering
    names: dict[str, Any]
    leaves: dict[str, Leaf | Kept]

    @property
    def initial(self) -> tuple[ops.Value, ...]:
        """The initial values."""
        return tuple(each for leaf in self.leaves.values() for each in _tuple(leaf.initial))

    @property
    def inside(self) -> tuple[ops.Value, ...]:
        """The carried values in an iteration."""
        return tuple(each for leaf in self.leaves.values() for each in _tuple(leaf.inside))

    def after(self, results: Iterator[ops.Value]) -> dict[str, Any]:
        """The names after the loop, their values from `results`."""

        def rebuilt(path: str, value: Any) -> Any:
            leaf = self.leaves.get(path)
            if isinstance(leaf, Kept):
                return templates.built(self.low, leaf.template, results, path)
            parts = structures.parts(value)
            if parts is not None:
                items = [rebuilt(path + suffix, item) for suffix, item in parts]
                return structures.rebuild(value, items)
            return Number(next(results)) if path in self.leaves else value

        return {name: rebuilt(name, value) for name, value in self.names.items()}


def _tuple(values: ops.Value | tuple[ops.Value, ...]) -> tuple[ops.Value, ...]:
    return values if isinstance(values, tuple) else (values,)


def carry(low: Lowering, names: list[str], assumed: Assumed, node: ast.AST) -> Carried:
    """Sets the names that a loop assigns to their values in an iteration.

    What is `within` an object of the kernel library, such as how many stages a pipeline has, is
    taken for a constant at first.
    """
    leaves: dict[str, Leaf | Kept] = {}

    def enter(path: str, hint: str, value: Any, *, within: bool = False) -> Any:
        if within and isinstance(value, (bool, int)) and path not in assumed.attributes:
            return value
        template = assumed.kinds.get(path, _template(low, value))
        if template is not None:
            initial = tuple(templates.values(low, value, template, node))
            inside = tuple(ops.Value(each.type, hint) for each in initial)
            leaves[path] = Kept(template, initial, inside)
            return templates.built(low, template, iter(inside), path)
        parts = structures.parts(value)
        if parts is not None:
            ours = within or type(value).__module__.startswith("ferrule.")
            items = [enter(path + suffix, hint, item, within=ours) for suffix, item in parts]
            return structures.rebuild(value, items)
        if not isinstance(value, Number) and not coercion.is_python_number(value):
            return value
        number = coercion.as_number(low, value, node, assumed.dtypes.get(path))
        begins = None if isinstance(value, (Number, Numeric)) else coercion.plain(value)
        leaf = leaves[path] = Leaf(number.value, ops.Value(number.dtype, hint), begins)
        return Number(leaf.inside)

    carried = {
        name: _widened(low, name, low.names[name], assumed, node)
        for name in names
        if name not in assumed.clashes
    }
    for name, value in carried.items():
        low.names[name] = enter(name, name, value)
    line = low.location(node).line
    low.names.update({name: assumed.undefined(name, line) for name in assumed.clashes})
    return Carried(low, carried, leaves)


def _widened(low: Lowering, path: str, value: Any, assumed: Assumed, node: ast.AST) -> Any:
    """A value whose numbers are complex where the loop makes them so."""
    dtype = assumed.dtypes.get(path)
    if dtype is not None and dtype.kind == "complex":
        return scalars.in_dtype(low, value, dtype, node)
    found = structures.parts(value) if assumed.dtypes else None
    if not found or isinstance(value, ComplexNumber):
        return value
    items = [_widened(low, path + suffix, item, assumed, node) for suffix, item in found]
    return structures.rebuild(value, items)


def _template(low: Lowering, value: Any) -> Any:
    """The kind of a carried value that is not a number; None for numbers, and for values that are
    not carried."""
    if not isinstance(value, (Handle, TensorView, Maybe, OneOf)):
        return None
    try:
        return templates.common(low, value, value)
    except templates.Unlike:
        return None


def yielded(low: Lowering, carried: Carried, assumed: Assumed, node: ast.AST) -> list[ops.Value]:
    """The carried values at the end of an iteration.  Raises Retry."""
    end = _End(low, carried, assumed, node)
    for end.root, before in carried.names.items():
        name = end.root
        try:
            end.visit(name, before, low.names[name])
        except _Changed as changed:
            end.found.clashes[name] = changed.error
    values = [] if end.found.any() else end.finished()
    if end.found.any():
        raise Retry(end.found, assumed)
    return values


class _Changed(Exception):
    """A name's value after an iteration is of another kind than before the loop."""

    def __init__(self, error: CompileError) -> None:
        self.error = error


@dataclass(slots=True)
class _End:
    """Compares names before a loop with those after an iteration."""

    low: Lowering
    carried: Carried
    assumed: Assumed
    node: ast.AST
    values: list[list[ops.Value]] = field(default_factory=list)
    templates: list[Any] = field(default_factory=list)
    roots: list[str] = field(default_factory=list)
    root: str = ""
    found: Assumed = field(default_factory=Assumed)

    def finished(self) -> list[ops.Value]:
        """All values; those that are not numbers get a reference for the next iteration if
        necessary."""
        build, low = self.low.builder, self.low
        kept = [i for i, template in enumerate(self.templates) if template is not None]
        flat = [value for i in kept for value in self.values[i]]
        region = build.current.freeze()
        if ownership.must_keep(region, flat):
            kinds = [self.templates[i] for i in kept]
            self.require_owners(region)
            values = ownership.kept(low, kinds, [self.values[i] for i in kept], self.node)
            for i, each in zip(kept, values, strict=True):
                self.values[i] = each
        return [value for each in self.values for value in each]

    def require_owners(self, region: ops.Region) -> None:
        """A name with a view of a tensor that the loop makes cannot be read after it."""
        for name, template, values in zip(self.roots, self.templates, self.values, strict=True):
            if ownership.without_owner(self.low, region, template, values):
                self.found.clashes[name] = self.low.error(
                    self.node,
                    f"{name!r} is a part of a tensor that this loop makes, or such a tensor in "
                    f"the place of a parameter: nobody owns it in the next iteration",
                    hint="begin with a tensor of fe.empty, and take parts of it where they are "
                    "needed",
                )

    def add(self, values: list[ops.Value], template: Any = None) -> None:
        """Adds the values of a leaf; a number has no template."""
        self.values.append(values)
        self.templates.append(template)
        self.roots.append(self.root)

    def kept(self, path: str, leaf: Kept, before: Any, after: Any) -> None:
        """Adds a value that is not a number, if it has kept its kind."""
        template = self.common(path, leaf.template, before, after)
        if templates.key(template) != templates.key(leaf.template):
            if path in self.assumed.kinds:
                raise self.changed(path, before, after)
            self.found.kinds[path] = template
            return
        self.add(templates.values(self.low, after, leaf.template, self.node), leaf.template)

    def common(self, path: str, template: Any, before: Any, after: Any) -> Any:
        """The common kind of a name's values before and after."""
        try:
            return templates.common(self.low, before if template is None else template, after)
        except templates.Unlike:
            raise self.changed(path, before, after) from None

    def visit(self, path: str, before: Any, after: Any) -> None:
        """Adds the values of a name, or of a part of it."""
        if isinstance(after, Undefined) and after.error is not None:
            raise _Changed(after.error)
        leaf = self.carried.leaves.get(path)
        if isinstance(leaf, Kept):
            self.kept(path, leaf, before, after)
            return
        if self.becomes_complex(path, before, after):
            return
        parts = structures.parts(before)
        if parts is not None:
            if after is not NOTHING and not structures.alike(before, after):
                raise self.changed(path, before, after)
            items = structures.parts(after) or [("", NOTHING)] * len(parts)
            for (suffix, old), (_, new) in zip(parts, items, strict=True):
                self.visit(path + suffix, old, new)
        elif leaf is not None:
            self.number(path, leaf, after)
        elif after is NOTHING or isinstance(before, Undefined) or same(before, after):
            pass
        elif isinstance(before, (bool, int)):
            self.found.attributes.add(path)
        else:
            self.found.kinds[path] = self.common(path, None, before, after)

    def becomes_complex(self, path: str, before: Any, after: Any) -> bool:
        """Whether a Python number, or a constant, has become a complex number, as it may."""
        if not isinstance(after, ComplexNumber) or isinstance(before, ComplexNumber):
            return False
        known = coercion.plain(before)
        if isinstance(known, Numeric):
            dtype = known.dtype if isinstance(known.value, complex) else None
        else:
            is_weak = isinstance(known, (bool, int, float, complex))
            dtype = weak(known, after.dtype) if is_weak else None
        if dtype is after.dtype:
            self.found.dtypes[path] = dtype
        return dtype is after.dtype

    def number(self, path: str, leaf: Leaf, after: Any) -> None:
        """Adds a number, if it has kept its dtype."""
        if after is NOTHING:
            self.add([zero(self.low, leaf.dtype)])
            return
        if not isinstance(after, Number) and not coercion.is_python_number(after):
            raise self.changed(path, Number(leaf.inside), after)
        number = coercion.as_number(self.low, after, self.node, leaf.dtype)
        if number.dtype is leaf.dtype:
            self.add([number.value])
        elif leaf.number is not None and weak(leaf.number, number.dtype) is number.dtype:
            self.found.dtypes[path] = number.dtype
        else:
            retype(self.low, path, (leaf.dtype, number.dtype))
            raise _Changed(self.another_dtype(path, leaf, number.dtype))

    def another_dtype(self, path: str, leaf: Leaf, dtype: DType) -> CompileError:
        """The error of a number whose dtype changes."""
        return self.low.error(
            self.node,
            f"{path!r} changes its type in this loop: it is {leaf.dtype.name} before it "
            f"and {dtype.name} after an iteration",
            hint=f"start with fe.{dtype.__name__}(...), or convert in the loop",
        )

    def remedy(self, after: Any) -> str:
        """What to write instead of giving a name this value."""
        if isinstance(after, TensorView) and after.value in self.low.state.shrunk:
            return (
                "count the rows in the loop, and write fe.shrink once behind it, of the whole "
                "tensor"
            )
        return "give what the loop assigns another name, if it is not needed after an iteration"

    def changed(self, path: str, before: Any, after: Any) -> _Changed:
        """The exception for a name whose kind changes."""
        was = before.dtype.name if isinstance(before, Number) else describe(before)
        return _Changed(
            self.low.error(
                self.node,
                f"{path!r} is {was} before this loop and {describe(after)} after an iteration",
                expected=f"{choosable(self.low)}, where a loop changes a name",
                hint=self.remedy(after),
            )
        )
