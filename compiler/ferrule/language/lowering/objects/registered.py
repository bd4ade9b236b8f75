"""Types that are registered with tvm-ffi, as a compilation asks for them."""

from __future__ import annotations

from ferrule.compiler.cache.keys import note_unkept
from ferrule.runtime.values.typeinfo import registered_index


def known_index(key: str) -> int | None:
    """The index of a type, None if there is none.  What is registered is in no key."""
    note_unkept(f"it reads what tvm-ffi knows of the type {key}")
    return registered_index(key)
