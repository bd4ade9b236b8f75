"""The driver's linker: what it gives out of one text of PTX is that text, which can be loaded.

Two texts that call each other, and whatever is machine code, are refused by name.
"""

from __future__ import annotations

import ctypes
from dataclasses import field
from typing import Any, Final

from ferrule.emulator.driver.libraries import check_text, file_at
from ferrule.emulator.driver.library.exports import Exports, Needs
from ferrule.emulator.driver.places import get_text, put_word
from ferrule.emulator.driver.results import DriverError, Result
from ferrule.emulator.driver.state import Context, Driver
from ferrule.specs.deferred import dataclass

exports: Final = Exports()

_INPUTS: Final = ("cubins", "PTX", "fat binaries", "objects", "libraries", "NVVM IR")
_PTX: Final = 1  # CU_JIT_INPUT_PTX


@dataclass(slots=True)
class Linking:
    """The texts that were added, and the image that was linked of them."""

    context: Context
    texts: list[bytes] = field(default_factory=list)
    linked: Any = None


@exports("cuLinkCreate_v2 cuLinkCreate", "uppo", Needs.NO_CAPTURE)
def create(driver: Driver, count: int, options: int, values: int, out: int) -> None:
    linking = Linking(driver.current())
    put_word(out, driver.new(linking, linking.context))


@exports("cuLinkAddData_v2 cuLinkAddData", "pipzpupp")
def add_data(driver: Driver, handle: int, kind: int, data: int, size: int, *_: int) -> None:
    _add(driver, handle, kind, ctypes.string_at(data, size))


@exports("cuLinkAddFile_v2 cuLinkAddFile", "pipupp")
def add_file(driver: Driver, handle: int, kind: int, path: int, *_: int) -> None:
    _check_kind(kind, get_text(path) if path else "a file")
    _add(driver, handle, kind, bytes(file_at(path)))


def _check_kind(kind: int, what: str) -> None:
    if not 0 <= kind < len(_INPUTS):
        raise DriverError(Result.INVALID_VALUE, f"no kind {kind} of input")
    if kind != _PTX:
        raise DriverError(
            Result.NOT_SUPPORTED, f"{what}: the emulated GPU links no {_INPUTS[kind]}, PTX alone"
        )


def _add(driver: Driver, handle: int, kind: int, data: bytes) -> None:
    linking = driver.find(handle, Linking, "linker")
    _check_kind(kind, "an input")
    text = data.rstrip(b"\0")
    check_text(driver, text.decode("latin-1"))
    if linking.texts:
        raise DriverError(Result.NOT_SUPPORTED, "the emulated GPU links one text of PTX, not two")
    linking.texts.append(text)


@exports("cuLinkComplete", "poo")
def complete(driver: Driver, handle: int, out: int, size: int) -> None:
    linking = driver.find(handle, Linking, "linker")
    if not linking.texts:
        raise DriverError(Result.INVALID_VALUE, "nothing was added")
    linking.linked = ctypes.create_string_buffer(linking.texts[0])
    put_word(out, ctypes.addressof(linking.linked))
    put_word(size, ctypes.sizeof(linking.linked))


@exports("cuLinkDestroy", "p")
def destroy(driver: Driver, handle: int) -> None:
    linking = driver.find(handle, Linking, "linker")
    driver.forget(handle, linking.context)
