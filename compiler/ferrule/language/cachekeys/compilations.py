"""The way of a compilation of the language through the cache: its key, and what makes it again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ferrule.compiler.cache.encoding import named
from ferrule.compiler.cache.keys import Key, joined, key_of
from ferrule.compiler.cache.toolchain import parts_of, toolchain
from ferrule.language.cachekeys.walk import Walk
from ferrule.language.dependencies.witness import Witness

if TYPE_CHECKING:
    from ferrule.language.stages import Job


def key_of_job(job: Job) -> Key:
    """The key of a compilation as everything is now.  Raises Uncacheable."""
    return _key(job, None)[0]


def watched(job: Job) -> tuple[Key, Witness, bool]:
    """The key of a compilation, a witness of all that is in it, and whether the witness sees every
    change of it.  Raises Uncacheable."""
    witness = Witness()
    key, large = _key(job, witness)
    return key, witness, not large


def _key(job: Job, witness: Witness | None) -> tuple[Key, bool]:
    """The key, and whether a value in it is too large to be watched."""
    options, examples = job.options, job.examples
    walk = Walk(witness, places=not options.strip_paths or options.generate_line_info)
    walk.function(job.function)
    signature = job.signature
    ways = signature.positional_only, signature.keyword_only
    walk.add(
        "the arguments", [signature.name, list(signature.params), *ways, list(signature.requires)]
    )
    walk.add("the constants", [examples.constants, examples.variadic])
    walk.add("the classes of the arguments", [(list(p), c) for p, c in examples.classes.items()])
    parts = {**walk.finish(), **parts_of(options)}
    return key_of(named(job.function), parts), walk.large


def key_of_several(name: str, keys: Sequence[Key], how: str = "") -> Key:
    """The key of a function that is made of several compilations."""
    named = {f"#{position}": key for position, key in enumerate(keys)}
    return joined(name, named, {"how they are joined": how.encode(), **toolchain()})
