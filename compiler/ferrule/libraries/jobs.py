"""`Job`: a compilation that is described now and done later."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from ferrule.compiler.options import Options
from ferrule.runtime import Function
from ferrule.specs import Condition, Requirement
from ferrule.specs.deferred import dataclass
from ferrule.specs.requirements import checked_requirements


@dataclass(frozen=True)
class Job:
    """One compilation: `ferrule.compile(fn, *args, options=options, requires=requires, **kwargs)`.

    `args` has an example for each parameter, `kwargs` those of keyword-only parameters by name.
    `name` is the name to export the function under, by default its own. TypeError for a function,
    arguments or a name of another type.
    """

    fn: Any
    args: Sequence[Any] = ()
    options: str | Options | None = None
    name: str = ""
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    requires: Sequence[Condition | Requirement] = ()

    def __post_init__(self) -> None:
        own = getattr(self.fn, "__name__", None)
        if not callable(self.fn) or own is None:
            raise TypeError(f"the fn of a Job must be a function, but got {self.fn!r}")
        if isinstance(self.args, str) or not isinstance(self.args, Sequence):
            raise TypeError(
                f"the args of Job({own}) must be a list of example arguments, but got {self.args!r}"
            )
        if not isinstance(self.kwargs, Mapping):
            raise TypeError(f"the kwargs of Job({own}) must be a dict, but got {self.kwargs!r}")
        requires = checked_requirements(f"Job({own})", self.requires)
        object.__setattr__(self, "requires", requires)
        if not isinstance(self.name, str):
            raise TypeError(f"the name of Job({own}) must be a str, but got {self.name!r}")
        if not self.name:
            object.__setattr__(self, "name", own)

    def compile(self) -> Function:
        """The compiled function."""
        from ferrule.language.compilation import compile

        how: dict[str, Any] = {"options": self.options, "requires": self.requires}
        return compile(self.fn, *self.args, **how, **self.kwargs)
