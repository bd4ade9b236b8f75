"""`Job`: a compilation that is described now and done later."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ferrule.compiler.options import Options
from ferrule.runtime import Function


@dataclass(frozen=True)
class Job:
    """One compilation: `ferrule.compile(fn, *args, options=options, **kwargs)`."""

    fn: Any
    args: Sequence[Any] = ()
    options: str | Options | None = None
    name: str = ""
    kwargs: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.name:
            object.__setattr__(self, "name", self.fn.__name__)

    def compile(self) -> Function:
        """The compiled function."""
        from ferrule.language.compilation import compile

        return compile(self.fn, *self.args, options=self.options, **self.kwargs)
