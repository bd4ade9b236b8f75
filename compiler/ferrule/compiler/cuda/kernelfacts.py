"""Images of kernels, and what is known of kernels beside them."""

from __future__ import annotations

from dataclasses import field

from ferrule.specs.deferred import dataclass


@dataclass(frozen=True, slots=True)
class KernelImage:
    """Kernels for one GPU architecture: PTX modules, and the cubins that were assembled from them.

    There are cubins only if they were requested.  A function has one module; a function that calls
    others has their modules too.
    """

    arch: str
    modules: tuple[str, ...] = field(repr=False)
    cubins: tuple[bytes, ...] = field(default=(), repr=False)

    @property
    def ptx(self) -> str:
        """The text of all modules."""
        return "\n".join(self.modules)


@dataclass(frozen=True, slots=True)
class Member:
    """A number or an address in a struct: its offset in bytes, its type in C++ syntax, and for an
    address the alignment (`aligned`) of the memory behind it."""

    at: int
    type: str
    aligned: int = 1


@dataclass(frozen=True, slots=True)
class KernelFacts:
    """Facts from the source of a kernel that its binary lacks; None for an unknown fact.

    `types` are the types of its parameters in C++ syntax.  `restricted` tells which of them are
    restrict addresses.  `aligned` is the alignment of the memory behind each one beyond its type's,
    0 if the compiler does not show it.  `members` are the numbers and addresses in each parameter
    that is a struct by value, if they are known.  `variables` are the names of the module's
    variables that it uses.  `dynamic_shared` is as in `KernelParameters`.  `is_read`: the source
    was read for these facts, so that callers get remarks about missing ones.
    """

    kernel: str
    types: tuple[str, ...] | None = None
    members: tuple[tuple[Member, ...] | None, ...] = ()
    aligned: tuple[int, ...] = ()
    restricted: tuple[bool, ...] | None = None
    variables: frozenset[str] | None = None
    dynamic_shared: bool | None = None
    is_read: bool = False
