"""`match` as `if` and `elif`: a function that has one is rewritten before anything else reads it.

A pattern becomes a condition over the subject, and the names that it binds assignments of its
parts.  So what is known while compiling decides between cases, and what is not decides at run time.
"""

from __future__ import annotations

import ast
from typing import Any, Final

from ferrule.specs.deferred import dataclass

_OF_THEMSELVES: Final = ("bool", "bytes", "dict", "float", "int", "list", "str", "tuple")
"""Classes whose pattern takes the subject itself by position."""
SUBJECT: Final = "match_subject"


class _UnknownPattern(Exception):
    """A pattern of a mapping, or one that binds a name in an alternative or behind a star."""


def has_match(node: ast.AST) -> bool:
    """Whether a function has a `match` anywhere in it."""
    return any(isinstance(each, ast.Match) for each in ast.walk(node))


class _Rewriter(ast.NodeTransformer):
    """Replaces each `match` by an `if`, its innermost ones first."""

    def __init__(self) -> None:
        self.count = 0

    def visit_Match(self, node: ast.Match) -> list[ast.stmt]:
        self.generic_visit(node)
        before: list[ast.stmt] = []
        subject: ast.expr = node.subject
        if not isinstance(subject, ast.Name):
            self.count += 1
            name = f"{SUBJECT}_{self.count}"
            before.append(ast.Assign([ast.Name(name, ast.Store())], subject))
            subject = ast.Name(name, ast.Load())
        rest: list[ast.stmt] = []
        try:
            for case in reversed(node.cases):
                rest = [_branch(case, subject, rest)]
        except _UnknownPattern:
            return [node]  # the lowering refuses it, at its place
        result = [*before, *rest]
        for each in result:
            for inner in ast.walk(each):
                if not hasattr(inner, "lineno"):
                    ast.copy_location(inner, node)
        return result


def without_match(node: Any) -> Any:
    """The function with `if` in place of `match`."""
    return _Rewriter().visit(node)


def _branch(case: ast.match_case, subject: ast.expr, rest: list[ast.stmt]) -> ast.If:
    found = _Found([], [])
    found.pattern(case.pattern, subject)
    conditions = list(found.conditions)
    if case.guard is not None:
        conditions.append(_Replaced(dict(found.names)).visit(case.guard))
    binds: list[ast.stmt] = [
        ast.Assign([ast.Name(name, ast.Store())], value) for name, value in found.names
    ]
    test: ast.expr = ast.Constant(True) if not conditions else conditions[0]
    if len(conditions) > 1:
        test = ast.BoolOp(ast.And(), conditions)
    branch = ast.If(test, [*binds, *case.body], rest)
    for each in (test, *binds):
        for inner in ast.walk(each):
            if not hasattr(inner, "lineno"):
                ast.copy_location(inner, case.pattern)
    return ast.copy_location(branch, case.pattern)


class _Replaced(ast.NodeTransformer):
    """An expression with the parts of the subject in place of the names that a pattern binds."""

    def __init__(self, names: dict[str, ast.expr]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.names.get(node.id, node)


@dataclass(slots=True)
class _Found:
    """What patterns ask of a subject, in order, and the names that they bind."""

    conditions: list[ast.expr]
    names: list[tuple[str, ast.expr]]

    def pattern(self, pattern: ast.pattern, subject: ast.expr) -> None:
        """Adds a pattern."""
        match pattern:
            case ast.MatchValue(value=value):
                self.conditions.append(ast.Compare(subject, [ast.Eq()], [value]))
            case ast.MatchSingleton(value=value):
                self.conditions.append(ast.Compare(subject, [ast.Is()], [ast.Constant(value)]))
            case ast.MatchAs(pattern=inner, name=name):
                if inner is not None:
                    self.pattern(inner, subject)
                if name is not None:
                    self.names.append((name, subject))
            case ast.MatchOr(patterns=patterns):
                self.alternatives(patterns, subject)
            case ast.MatchSequence(patterns=patterns):
                self.sequence(patterns, subject)
            case ast.MatchClass():
                self.class_(pattern, subject)
            case _:
                raise _UnknownPattern

    def alternatives(self, patterns: list[ast.pattern], subject: ast.expr) -> None:
        """Adds `a | b`, which binds no names."""
        tests: list[ast.expr] = []
        for each in patterns:
            inner = _Found([], [])
            inner.pattern(each, subject)
            if inner.names:
                raise _UnknownPattern
            tests.append(_all(inner.conditions))
        self.conditions.append(ast.BoolOp(ast.Or(), tests))

    def sequence(self, patterns: list[ast.pattern], subject: ast.expr) -> None:
        """Adds `a, b` and `a, *rest`, of tuples and lists."""
        stars = [i for i, each in enumerate(patterns) if isinstance(each, ast.MatchStar)]
        kinds = ast.Tuple([_name("tuple"), _name("list")], ast.Load())
        count = ast.Constant(len(patterns) - len(stars))
        length = _call("len", subject)
        compare: ast.cmpop = ast.GtE() if stars else ast.Eq()
        self.conditions.append(_call("isinstance", subject, kinds))
        self.conditions.append(ast.Compare(length, [compare], [count]))
        first = stars[0] if stars else len(patterns)
        for i, each in enumerate(patterns):
            if not isinstance(each, ast.MatchStar):
                place = i if i < first else i - len(patterns)
                self.pattern(each, ast.Subscript(subject, ast.Constant(place), ast.Load()))
            elif each.name is not None:
                raise _UnknownPattern

    def class_(self, pattern: ast.MatchClass, subject: ast.expr) -> None:
        """Adds `C(...)`: positions are the names in the class's `__match_args__`."""
        self.conditions.append(_call("isinstance", subject, pattern.cls))
        of_itself = isinstance(pattern.cls, ast.Name) and pattern.cls.id in _OF_THEMSELVES
        for i, each in enumerate(pattern.patterns):
            names = ast.Attribute(pattern.cls, "__match_args__", ast.Load())
            name = ast.Subscript(names, ast.Constant(i), ast.Load())
            self.pattern(each, subject if of_itself else _call("getattr", subject, name))
        for attribute, each in zip(pattern.kwd_attrs, pattern.kwd_patterns, strict=True):
            self.pattern(each, ast.Attribute(subject, attribute, ast.Load()))


def _all(conditions: list[ast.expr]) -> ast.expr:
    if len(conditions) == 1:
        return conditions[0]
    return ast.BoolOp(ast.And(), conditions) if conditions else ast.Constant(True)


def _name(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _call(name: str, *args: ast.expr) -> ast.Call:
    return ast.Call(_name(name), list(args), [])
