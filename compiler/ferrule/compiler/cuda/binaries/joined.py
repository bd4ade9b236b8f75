"""Codes of several modules as one: kernels that were compiled apart, by their names.

The modules stay apart: what two of them call the same, a variable or a function, are two, and each
has images for architectures of its own.  A launch takes the code that has its kernel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from ferrule.compiler.cuda.binaries.names import find_kernel
from ferrule.compiler.cuda.code import DeviceCode, joined_code
from ferrule.specs.deferred import dataclass

if TYPE_CHECKING:
    from ferrule.compiler.cuda.binaries.fit import LaunchSizes
    from ferrule.compiler.cuda.binaries.parameters import KernelParameters
    from ferrule.compiler.cuda.launcher.images import Image

_NO_NAMES: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class JoinedCode(DeviceCode):
    """The kernels of several codes: `holders` has the code of each name, and its name there.

    `images` are those of all codes, by architecture.
    """

    holders: tuple[tuple[str, DeviceCode, str], ...] = field(default=(), repr=False)

    def holder(self, kernel: str) -> tuple[DeviceCode, str]:
        """See `DeviceCode`."""
        name = find_kernel(kernel, self.kernels)
        for here, code, there in self.holders:
            if here == name:
                return code.holder(there)
        return self, kernel

    def parameters(self, kernel: str) -> KernelParameters:
        """See `DeviceCode`."""
        code, there = self.holder(kernel)
        return DeviceCode.parameters(code, there)

    def check_launch(
        self, kernel: str, packed: Sequence[tuple[int, str]], sizes: LaunchSizes | None = None
    ) -> list[KernelParameters]:
        """See `DeviceCode`."""
        code, there = self.holder(kernel)
        return DeviceCode.check_launch(code, there, packed, sizes)


def joined(
    codes: Sequence[DeviceCode], names: Sequence[Mapping[str, str]] | None = None
) -> DeviceCode:
    """See `DeviceCode.joined`."""
    renamed = _checked(codes, names)
    holders: dict[str, tuple[DeviceCode, str]] = {}
    for position, (code, new) in enumerate(zip(codes, renamed, strict=True)):
        for kernel in code.kernels:
            name = new.get(kernel, kernel)
            code_there, _ = holders.setdefault(name, (code, kernel))
            if holders[name] != (code, kernel):
                raise ValueError(_twice(name, list(codes).index(code_there), position))
    _check_served(codes)
    whole = joined_code(codes)
    assert whole is not None, "there is a code"
    found = tuple((name, code, kernel) for name, (code, kernel) in holders.items())
    return JoinedCode(whole.images, tuple(holders), whole.ptxas_options, whole.facts, found)


def _checked(
    codes: Sequence[DeviceCode], names: Sequence[Mapping[str, str]] | None
) -> Sequence[Mapping[str, str]]:
    """The new names for each code."""
    for position, code in enumerate(codes):
        if not isinstance(code, DeviceCode):
            raise TypeError(
                f"DeviceCode.joined: expected codes, such as DeviceCode.from_ptx(text), but #"
                f"{position} is a {type(code).__name__}"
            )
    if not codes:
        raise ValueError("DeviceCode.joined: expected at least one code")
    if names is None:
        return [_NO_NAMES] * len(codes)
    if isinstance(names, str | Mapping) or not all(isinstance(each, Mapping) for each in names):
        raise TypeError(
            "DeviceCode.joined: names must be a list with new names for each code, such as "
            f"[{{}}, {{'add': 'add_2'}}], but got {names!r}"
        )
    if len(names) != len(codes):
        raise ValueError(
            f"DeviceCode.joined: there are {len(codes)} codes, and names for {len(names)}"
        )
    for code, new in zip(codes, names, strict=True):
        for kernel, name in new.items():
            if kernel not in code.kernels:
                raise ValueError(
                    f"DeviceCode.joined: there is no kernel {kernel!r} to be named {name!r}; there "
                    f"are: {', '.join(code.kernels)}"
                )
            if not isinstance(name, str) or not name:
                raise TypeError(f"DeviceCode.joined: expected a name of {kernel}, but got {name!r}")
    return names


def _twice(name: str, first: int, other: int) -> str:
    places = ", ".join(["{}"] * other + [f"{{{name!r}: {name + '_2'!r}}}"])
    return (
        f"DeviceCode.joined: codes #{first} and #{other} both have a kernel {name}: name one of "
        f"them anew, names=[{places}]"
    )


def _check_served(codes: Sequence[DeviceCode]) -> None:
    """Raise ValueError if no GPU has an image of each code."""
    from ferrule.compiler.cuda.launcher.images import images_of

    tables = [images_of(code) for code in codes]
    known = {image.number for table in tables for image in table}
    if any(all(_serves(table, number) for table in tables) for number in known):
        return
    listed = "; ".join(
        f"#{position}: {', '.join(map(str, table))}" for position, table in enumerate(tables)
    )
    raise ValueError(f"DeviceCode.joined: no GPU has an image of each code: {listed}")


def _serves(images: Sequence[Image], number: int) -> bool:
    return any(image.serves_number(number) for image in images)
