"""The last step of frontends of Python kernels: they build the function of a kernel's call, with
the facts from the kernel's source and its outer values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ferrule.frontends.captured import compiled_in
from ferrule.frontends.given import location_of
from ferrule.frontends.reading import FILL, remarks_on, unfilled
from ferrule.specs import Signature, Tensor

if TYPE_CHECKING:
    from ferrule.compiler.conventions import CallingConvention
    from ferrule.compiler.options import Options
    from ferrule.runtime import Function


def build_kernel(
    kernel: Callable[..., Any],
    signature: Signature,
    convention: CallingConvention,
    *,
    results: Sequence[Tensor],
    zero: bool | str | Sequence[str],
    doc: str | None,
    options: str | Options | None,
) -> Function:
    """The function of a call of `kernel`, a Python function: it has the kernel's docstring and
    source location, remarks on results that the kernel reads before it writes them, and remarks on
    values that are compiled in."""
    from ferrule.compiler.building import build

    return build(
        signature,
        convention,
        results=results,
        zero=zero,
        doc=kernel.__doc__ if doc is None else doc,
        location=location_of(kernel),
        options=options,
        notes=remarks_on(signature.name, kernel, unfilled(results, zero), FILL),
        assumes=compiled_in(kernel),
    )
