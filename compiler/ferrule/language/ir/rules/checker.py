"""The interface of `verifier` for the modules with the rules for the ops of an area."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from ferrule.language.ir.types import Type
from ferrule.language.ir.values import Value
from ferrule.specs.dtypes import Kind


class Checker(Protocol):
    """The helpers for checking one function, which raise VerifierError if a rule is broken."""

    def require(self, holds: bool, rule: str) -> None: ...

    def types(self, values: Iterable[Value], wanted: Sequence[Type], what: str) -> None: ...

    def scalar(self, value: Value, kinds: Sequence[Kind], what: str) -> None: ...
