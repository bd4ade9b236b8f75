"""What a host function keeps beyond its recording: caches forget it."""

from __future__ import annotations

import functools
import gc
from collections.abc import Iterator
from typing import Any, Final

from ferrule.frontends.triton.recorded.log import Log
from ferrule.frontends.triton.recorded.numbers.base import Number

_HOLDERS: Final = (tuple, list, dict, set, frozenset)
_DEEP: Final = 4
"""A result is a tuple of tuples at most."""


def caches_forgotten(log: Log) -> None:
    """Clear each `functools.lru_cache` that has a number of this recording, as a key or in a
    result: a later call, of another recording or without one, would get it.

    Only where a number was a key is there one; a cache that has nothing of it is left alone.
    """
    if not log.hashed:
        return
    kind = type(functools.lru_cache(_same))
    if gc.get_freeze_count():  # what is frozen is in no list, and a cache may be
        gc.unfreeze()
    for each in gc.get_objects():
        if type(each) is kind and any(one.log is log for one in _numbers(each, _DEEP)):
            each.cache_clear()


def _same(value: Any) -> Any:
    return value


def _numbers(holder: Any, deep: int) -> Iterator[Number]:
    """The numbers in what a cache, a tuple or a dict holds."""
    for each in gc.get_referents(holder):
        if issubclass(type(each), Number):
            yield each
        elif deep and issubclass(type(each), _HOLDERS):
            yield from _numbers(each, deep - 1)
