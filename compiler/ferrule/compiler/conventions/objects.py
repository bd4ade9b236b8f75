"""The Tensor objects of arguments, for a call that gives an argument back.

A body gets the address of a tensor's elements; who returns the tensor itself needs the object that
owns them.  A view, the `DLTensor*` of a caller in C, has no owner, so such a parameter is `owning`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ferrule.specs import Param, Signature, Tensor
from ferrule.specs.copies import changed, mapped
from ferrule.specs.params import Tuple


def place_of(signature: Signature, tensor: Tensor) -> tuple[int, ...]:
    """The position of a tensor among the arguments, then those inside of tuples.

    Raises ValueError for a tensor that does not stand at exactly one such place.
    """
    places = list(_places(signature.arguments))
    found = [place for each, place in places if each is tensor]
    found = found or [place for each, place in places if each == tensor]
    if len(found) != 1:
        which = "is no parameter, and no item of a tuple," if not found else "stands twice"
        raise ValueError(
            f"{signature.name}: Tensor {tensor.name!r} {which} in {signature}, so it cannot be "
            f"given back: a result of a call is in results=[…], and what may be absent or of "
            f"several kinds comes back as a specs.AnyValue"
        )
    return found[0]


def held(signature: Signature, tensors: Sequence[Tensor]) -> Signature:
    """The signature with these tensors as `owning` parameters."""
    if not tensors:
        return signature

    def change(each: Param) -> Param:
        known = any(each is other or each == other for other in tensors)
        return changed(each, owning=True) if known else each

    return signature.altered(params=tuple(mapped(each, change) for each in signature.params))


def _places(
    params: Sequence[Param], outer: tuple[int, ...] = ()
) -> Iterator[tuple[Param, tuple[int, ...]]]:
    for position, param in enumerate(params):
        yield param, (*outer, position)
        if isinstance(param, Tuple):
            yield from _places(param.items, (*outer, position))
