"""The parts into which PyTorch cuts a tensor along a dim, as forms: `chunk`, `split`, `unbind`.

How many there are is what it was in the recording: a call is compared for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ferrule.frontends.triton.recorded.forms import Form, moved, selected
from ferrule.frontends.triton.recorded.numbers.base import plain


def forms_of_parts(name: str, form: Form, given: Sequence[Any], count: int) -> list[Form] | None:
    """The forms of the parts that a function of this name makes, in their order; None if they are
    not known.

    `given` are the arguments behind the tensor.  They may be wrong, and are to be compared with the
    tensors.
    """
    how, axis = (None, *given, 0)[:2] if name == "unbind" else (*given, 0)[:2]
    at = plain(axis) % len(form.shape)
    size = form.shape[at]
    if name == "unbind":
        _ = size == count
        return [selected(form, (at, number)) for number in range(count)]
    lengths = _lengths(name, size, how, count)
    if lengths is None:
        return None
    found, start = list[Form](), 0
    for length in lengths:
        shape = (*form.shape[:at], length, *form.shape[at + 1 :])
        found.append(replace(form, shape=shape, offset=moved(form.offset, start, form, at)))
        start = start + length
    return found


def _lengths(name: str, size: Any, how: Any, count: int) -> Sequence[Any] | None:
    """How long each part is."""
    if isinstance(how, tuple | list):
        _ = sum(how) == size  # else PyTorch raises
        return how if sum(map(plain, how)) == plain(size) else None
    if size == 0 or not how > 0:
        return None
    each = -(-size // how) if name == "chunk" else how
    if not -(-size // each) == count:
        return None
    return [*[each] * (count - 1), size - (count - 1) * each]
