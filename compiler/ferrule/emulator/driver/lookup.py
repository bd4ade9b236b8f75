"""The driver's functions that find its functions: by a name, for a version of CUDA."""

from __future__ import annotations

from typing import Final

from ferrule.emulator.driver.devices import VERSION
from ferrule.emulator.driver.library.exports import Exports, Needs
from ferrule.emulator.driver.library.names import FUNCTIONS
from ferrule.emulator.driver.places import get_text, put_int, put_word
from ferrule.emulator.driver.results import DriverError, Result
from ferrule.emulator.driver.state import Driver

exports: Final = Exports()

_FOUND, _NOT_FOUND, _TOO_OLD = 0, 1, 2
_PER_THREAD: Final = 2  # CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
_FLAGS: Final = range(3)


def _find(driver: Driver, name: str, version: int, per_thread: bool) -> tuple[int, int]:
    """The address of a function, 0 where there is none, and why."""
    forms = FUNCTIONS.get(name)
    if forms is None:
        return 0, _NOT_FOUND
    fitting = [form for form in forms if form.since <= version]
    if not fitting:
        return 0, _TOO_OLD
    form = fitting[-1]
    wanted = form.per_thread if per_thread and form.per_thread else form.symbol
    return driver.symbols[wanted], _FOUND


@exports("cuGetProcAddress_v2", "ooiqp", Needs.NOTHING)
def find(driver: Driver, name: int, out: int, version: int, flags: int, status: int) -> None:
    if flags not in _FLAGS:
        raise DriverError(Result.INVALID_VALUE, f"no flags {flags}")
    text = get_text(name)
    address, how = _find(driver, text, version, flags == _PER_THREAD)
    put_word(out, address)
    if status:
        put_int(status, how)
    if not address:
        raise DriverError(Result.NOT_FOUND, _why(text, version, how))


def _why(name: str, version: int, how: int) -> str:
    if how == _TOO_OLD:
        return f"CUDA {version} has no {name}, which is newer"
    return f"CUDA {VERSION} has no {name}"


@exports("cuGetProcAddress", "ooiq", Needs.NOTHING)
def find_early(driver: Driver, name: int, out: int, version: int, flags: int) -> None:
    find(driver, name, out, version, flags, 0)
