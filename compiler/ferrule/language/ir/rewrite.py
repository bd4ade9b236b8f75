"""Rewrites regions with other ops, or with other values.

Values keep their identity unless they are replaced.  Regions may be nested as deep as memory
allows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from ferrule.language.ir import ops
from ferrule.language.ir.builder import Builder
from ferrule.language.ir.walk import Work, drive, is_plain

Rule: TypeAlias = Callable[[Builder, ops.Op], None]
"""Appends the replacement of an op, whose regions are already rewritten: the op itself, others, or
nothing."""

Values: TypeAlias = Mapping[ops.Value, ops.Value]


def rewrite(region: ops.Region, rule: Rule) -> ops.Region:
    """The region after applying `rule` to each op, inner regions first."""
    return _rewritten(region, rule, {})


def substitute(region: ops.Region, values: Values) -> ops.Region:
    """The region with other values in place of values from outside."""
    return _rewritten(region, lambda b, op: b.append(with_operands(op, values)), values)


def _rewritten(region: ops.Region, rule: Rule, values: Values) -> ops.Region:
    done: list[ops.Region] = []
    drive(_region(Builder(), region, rule, values, done))
    return done.pop()


def _region(
    b: Builder, region: ops.Region, rule: Rule, values: Values, done: list[ops.Region]
) -> Work:
    """Appends the new region to `done`."""
    with b.region() as opened:
        for op in region.ops:
            if is_plain(op):
                rule(b, op)
                continue
            before = len(done)
            for inner in op.regions:
                yield _region(b, inner, rule, values, done)
            rule(b, with_regions(op, done[before:]))
            del done[before:]
    done.append(opened.freeze(*(values.get(value, value) for value in region.yields)))


def with_regions(op: ops.Op, regions: Sequence[ops.Region]) -> ops.Op:
    """The op with other regions, in the order of its fields."""
    if not regions:
        return op
    changed: dict[str, Any] = dict(zip(op.fields["regions"], regions, strict=True))
    return replace(op, **changed)


def with_operands(op: ops.Op, values: Values) -> ops.Op:
    """The op with other operands, in any of its fields."""
    changed: dict[str, Any] = {}
    for name in op.fields["operands"]:
        match getattr(op, name):
            case ops.Value() as old if old in values:
                changed[name] = values[old]
            case tuple() as many if any(each in values for each in many):
                changed[name] = tuple(values.get(each, each) for each in many)
    return replace(op, **changed) if changed else op
