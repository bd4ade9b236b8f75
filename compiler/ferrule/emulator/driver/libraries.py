"""The driver's functions about code: modules, libraries, their kernels and variables.

PTX is what can be executed. A module is loaded for the context that is current; a library for every
device that uses it, when it first does. A library's kernel stands wherever a function does, and
means that of the current device.
"""

from __future__ import annotations

import ctypes
import re
from dataclasses import field
from typing import Any, Final

from ferrule.emulator.driver.library.exports import Exports, Needs
from ferrule.emulator.driver.places import (
    get_int,
    get_text,
    get_words,
    put_bytes,
    put_int,
    put_word,
)
from ferrule.emulator.driver.properties import compute_capability
from ferrule.emulator.driver.results import DriverError, Result
from ferrule.emulator.driver.state import Context, Driver
from ferrule.specs.deferred import dataclass

exports: Final = Exports()

# A fatbin, 0xBA55ED50, and the struct that nvcc's host code points to one with, 0x466243B1.
_ELF, _FATBINS = b"\x7fELF", (b"\x50\xed\x55\xba", b"\xb1\x43\x62\x46")
_HOW: Final = (
    "compile to PTX: ferrule does, NVRTC with --gpu-architecture=compute_90, nvcc with -ptx, "
    "Triton's compiled kernels have asm['ptx']"
)
_TARGET: Final = re.compile(r"^\s*\.target\s+sm_(\d+)([af]?)", re.MULTILINE)
_VERSION: Final = re.compile(r"^\s*\.version\s+(\d+)\.(\d+)", re.MULTILINE)
# `CUjit_option` of cuda.h.
_ERROR_LOG, _ERROR_LOG_SIZE, _INFO_LOG_SIZE = 5, 6, 4


@dataclass(eq=False, slots=True)
class Code:
    """A module's or library's text, and what was loaded of it for each device."""

    text: str
    handle: int = 0
    context: Context | None = None
    """That of a module."""
    loaded: dict[int, Any] = field(default_factory=dict)
    functions: dict[tuple[str, int], Function] = field(default_factory=dict)
    kernels: dict[str, Kernel] = field(default_factory=dict)
    modules: dict[int, Code] = field(default_factory=dict)
    """Of a library: itself as a module of each device."""

    def on(self, driver: Driver, context: Context) -> Any:
        """What the machine has loaded for the device of a context."""
        found = self.loaded.get(context.device.ordinal)
        if found is None:
            found = self.loaded[context.device.ordinal] = _load(driver, self.text)
            for address, size in found.variables.values():
                if size:
                    driver.add_variable(address, size, self.context or context)
        return found

    def function(self, driver: Driver, name: str, context: Context) -> Function:
        """A kernel on the device of a context; NOT_FOUND where the text has none of this name."""
        key = name, context.device.ordinal
        found = self.functions.get(key)
        if found is None:
            kernels = self.on(driver, context).kernels
            if name not in kernels:
                raise DriverError(Result.NOT_FOUND, _not_found("kernel", name, kernels))
            found = self.functions[key] = Function(kernels[name], self, context.device.ordinal)
            found.handle = driver.new(found)
        return found

    def close(self, driver: Driver) -> None:
        """Unload; its handles stand for nothing from now on."""
        for table in (self.functions, self.kernels, self.modules):
            for thing in table.values():
                driver.forget(thing.handle)
        for each in self.loaded.values():
            for address, size in each.variables.values():
                if size and driver.allocations.at_start(address):
                    driver.allocations.remove(address)
            each.unload()


@dataclass(eq=False, slots=True)
class Function:
    """A kernel of a device: what launches take. `attributes` are those that a program has set."""

    kernel: Any
    code: Code
    device: int
    handle: int = 0
    attributes: dict[int, int] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class Kernel:
    """A kernel of a library, of whatever device is current."""

    name: str
    code: Code
    handle: int = 0


def _not_found(what: str, name: str, there: Any) -> str:
    listed = ", ".join(list(there)[:8])
    return f"no {what} {name!r}; there {'are ' + listed if listed else 'is none'}"


# ---- loading ----


def _load(driver: Driver, text: str) -> Any:
    try:
        return driver.machine.load(text)
    except (DriverError, MemoryError):
        raise
    except Exception as error:
        # Only a PtxError, which names a line, is a mistake of the program.
        if not hasattr(error, "line"):
            raise
        raise DriverError(Result.INVALID_PTX, str(error)) from None


def _image(driver: Driver, address: int) -> str:
    """The text of PTX that an image is."""
    if not address:
        raise DriverError(Result.INVALID_VALUE, "the image is null")
    start = ctypes.string_at(address, 4) if get_int(address) else b""
    if start == _ELF:
        raise DriverError(
            Result.NO_BINARY_FOR_GPU, f"an emulated GPU cannot execute a cubin, only PTX; {_HOW}"
        )
    if start in _FATBINS:
        raise DriverError(
            Result.NO_BINARY_FOR_GPU, f"an emulated GPU cannot execute a fat binary; {_HOW}"
        )
    text = get_text(address)
    check_text(driver, text)
    return text


def check_text(driver: Driver, text: str) -> None:
    """Refuse what is no PTX, and PTX for another architecture."""
    if not _VERSION.search(text):
        raise DriverError(Result.INVALID_IMAGE, "the image is no PTX: it has no .version")
    found = _TARGET.search(text)
    if found is None:
        raise DriverError(Result.INVALID_PTX, "the PTX has no .target")
    # PTX ISA, .target: without a letter it is for all newer ones too, with `a` for this one alone,
    # with `f` for newer ones of its family.
    have, wanted = compute_capability(driver.arch), divmod(int(found[1]), 10)
    fits = {"": wanted <= have, "a": wanted == have, "f": wanted[0] == have[0] and wanted <= have}
    if not fits[found[2]]:
        raise DriverError(
            Result.INVALID_PTX,
            f"the PTX is for sm_{found[1]}{found[2]}, and the emulated GPU is {driver.arch}",
        )


def _options(count: int, options: int, values: int) -> dict[int, tuple[int, int]]:
    """Options of the assembler, each with where its value stands and what that is."""
    if count and not (options and values):
        raise DriverError(Result.INVALID_VALUE, f"{count} options, and no place of them")
    return {
        get_int(options + 4 * i): (values + 8 * i, word)
        for i, word in enumerate(get_words(values, count))
    }


def _loaded(driver: Driver, image: int, options: dict[int, tuple[int, int]], context: Any) -> Code:
    """Code whose text was found to be right; what is wrong goes into the log of errors too."""
    try:
        code = Code(_image(driver, image), context=context)
        code.on(driver, context or _any_context(driver))
    except DriverError as error:
        _log(options, error.sentence)
        raise
    _log(options, "")
    return code


def _log(options: dict[int, tuple[int, int]], text: str) -> None:
    if _INFO_LOG_SIZE in options:
        put_int(options[_INFO_LOG_SIZE][0], 0)
    if _ERROR_LOG_SIZE not in options:
        return
    place, size = options[_ERROR_LOG_SIZE]
    _, log = options.get(_ERROR_LOG, (0, 0))
    # Options are passed as `void*`, and of this one an unsigned int counts (cuda.h,
    # CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES).
    size &= 0xFFFFFFFF
    data = text.encode()[: max(0, size - 1)]
    if log and size:
        put_bytes(log, data + b"\0")
    put_int(place, len(data))


def _any_context(driver: Driver) -> Context:
    """The current context; without one, that of the first device: a library needs none."""
    stack = driver.thread.contexts
    return stack[-1] if stack and stack[-1].alive else Context(0, driver.devices[0], True)


# ---- modules ----


@exports("cuModuleLoadData", "op", Needs.NO_CAPTURE)
def load_data(driver: Driver, out: int, image: int) -> None:
    _new_module(driver, out, image, {})


@exports("cuModuleLoadDataEx", "opupp", Needs.NO_CAPTURE)
def load_data_with(
    driver: Driver, out: int, image: int, count: int, options: int, values: int
) -> None:
    _new_module(driver, out, image, _options(count, options, values))


@exports("cuModuleLoadFatBinary", "op", Needs.NO_CAPTURE)
def load_fat_binary(driver: Driver, out: int, image: int) -> None:
    _new_module(driver, out, image, {})


@exports("cuModuleLoad", "op", Needs.NO_CAPTURE)
def loadfile_at(driver: Driver, out: int, path: int) -> None:
    _new_module(driver, out, ctypes.addressof(file_at(path)), {})


def file_at(path: int) -> ctypes.Array[ctypes.c_char]:
    """The contents of a file, and zeros behind them."""
    name = get_text(path) if path else ""
    try:
        with open(name, "rb") as file:
            # A text ends with a zero, and `_image` looks at the first four bytes, also of an empty
            # file.
            return ctypes.create_string_buffer(file.read() + b"\0" * 4)
    except OSError as error:
        raise DriverError(Result.FILE_NOT_FOUND, f"{name}: {error.strerror}") from None


def _new_module(driver: Driver, out: int, image: int, options: dict[int, tuple[int, int]]) -> None:
    context = driver.current()
    code = _loaded(driver, image, options, context)
    code.handle = driver.new(code, context)
    put_word(out, code.handle)


@exports("cuModuleUnload", "p", Needs.NO_CAPTURE)
def unload_module(driver: Driver, handle: int) -> None:
    code = _module(driver, handle)
    if code.context is None or handle not in code.context.owned:
        raise DriverError(Result.NOT_PERMITTED, "the module is a library's, which is unloaded")
    code.close(driver)
    driver.forget(handle, code.context)


def _module(driver: Driver, handle: int) -> Code:
    code = driver.find(handle, Code, "module")
    if code.context is None:
        raise DriverError(Result.INVALID_HANDLE, "a library stands where a module is wanted")
    return code


@exports("cuModuleGetLoadingMode", "o", Needs.NOTHING)
def loading_mode(driver: Driver, out: int) -> None:
    put_int(out, 1)  # eager


@exports("cuModuleGetFunction", "opp")
def module_function(driver: Driver, out: int, handle: int, name: int) -> None:
    code = _module(driver, handle)
    function = code.function(driver, _name(name), code.context or driver.current())
    put_word(out, function.handle)


def _name(address: int) -> str:
    if not address:
        raise DriverError(Result.INVALID_VALUE, "the name is null")
    return get_text(address)


@exports("cuModuleGetGlobal_v2", "pppp")
def module_variable(driver: Driver, out: int, size: int, handle: int, name: int) -> None:
    code = _module(driver, handle)
    _tell_variable(driver, code, code.context or driver.current(), (out, size), _name(name))


def _tell_variable(
    driver: Driver, code: Code, context: Context, places: tuple[int, int], name: str
) -> None:
    variables = code.on(driver, context).variables
    if name not in variables:
        raise DriverError(Result.NOT_FOUND, _not_found("variable", name, variables))
    for place, value in zip(places, variables[name], strict=True):
        if place:
            put_word(place, value)


@exports("cuModuleGetFunctionCount", "op")
def function_count(driver: Driver, out: int, handle: int) -> None:
    code = _module(driver, handle)
    put_int(out, len(code.on(driver, driver.current()).kernels))


@exports("cuModuleEnumerateFunctions", "oup")
def each_function(driver: Driver, out: int, count: int, handle: int) -> None:
    code = _module(driver, handle)
    context = code.context or driver.current()
    for i, name in enumerate(list(code.on(driver, context).kernels)[:count]):
        put_word(out + 8 * i, code.function(driver, name, context).handle)


# ---- libraries ----


@exports("cuLibraryLoadData", "opppuppu", Needs.INIT)
def load_library(
    driver: Driver,
    out: int,
    image: int,
    options: int,
    values: int,
    count: int,
    library_options: int,
    library_values: int,
    library_count: int,
) -> None:
    _new_library(driver, out, image, _options(count, options, values))


@exports("cuLibraryLoadFromFile", "opppuppu", Needs.INIT)
def load_libraryfile_at(
    driver: Driver,
    out: int,
    path: int,
    options: int,
    values: int,
    count: int,
    library_options: int,
    library_values: int,
    library_count: int,
) -> None:
    image = file_at(path)
    _new_library(driver, out, ctypes.addressof(image), _options(count, options, values))


def _new_library(driver: Driver, out: int, image: int, options: dict[int, tuple[int, int]]) -> None:
    if driver.captures and driver.thread.capture_mode != 2:
        driver.disturb()
    code = _loaded(driver, image, options, None)
    code.handle = driver.new(code)
    put_word(out, code.handle)


def _library(driver: Driver, handle: int) -> Code:
    code = driver.find(handle, Code, "library")
    if code.context is not None:
        raise DriverError(Result.INVALID_HANDLE, "a module stands where a library is wanted")
    return code


@exports("cuLibraryUnload", "p", Needs.INIT)
def unload_library(driver: Driver, handle: int) -> None:
    code = _library(driver, handle)
    if driver.captures and driver.thread.capture_mode != 2:
        driver.disturb()
    code.close(driver)
    driver.forget(handle)


@exports("cuLibraryGetKernel", "opp", Needs.INIT)
def library_kernel(driver: Driver, out: int, handle: int, name: int) -> None:
    put_word(out, _kernel_of(driver, _library(driver, handle), _name(name)).handle)


def _kernel_of(driver: Driver, code: Code, name: str) -> Kernel:
    found = code.kernels.get(name)
    if found is None:
        kernels = code.on(driver, _any_context(driver)).kernels
        if name not in kernels:
            raise DriverError(Result.NOT_FOUND, _not_found("kernel", name, kernels))
        found = code.kernels[name] = Kernel(name, code)
        found.handle = driver.new(found)
    return found


@exports("cuLibraryGetKernelCount", "op", Needs.INIT)
def kernel_count(driver: Driver, out: int, handle: int) -> None:
    code = _library(driver, handle)
    put_int(out, len(code.on(driver, _any_context(driver)).kernels))


@exports("cuLibraryEnumerateKernels", "oup", Needs.INIT)
def each_kernel(driver: Driver, out: int, count: int, handle: int) -> None:
    code = _library(driver, handle)
    for i, name in enumerate(list(code.on(driver, _any_context(driver)).kernels)[:count]):
        put_word(out + 8 * i, _kernel_of(driver, code, name).handle)


@exports("cuLibraryGetModule", "op")
def library_module(driver: Driver, out: int, handle: int) -> None:
    """The library as a module of the current context: the same code, which the library owns."""
    code, context = _library(driver, handle), driver.current()
    code.on(driver, context)
    found = code.modules.get(context.device.ordinal)
    if found is None:
        found = Code(code.text, 0, context, code.loaded, code.functions)
        found.handle = driver.new(found)
        code.modules[context.device.ordinal] = found
    put_word(out, found.handle)


@exports("cuLibraryGetGlobal", "pppp")
def library_variable(driver: Driver, out: int, size: int, handle: int, name: int) -> None:
    code = _library(driver, handle)
    _tell_variable(driver, code, driver.current(), (out, size), _name(name))


@exports("cuLibraryGetManaged cuLibraryGetUnifiedFunction", "pppp", Needs.INIT)
def managed_variable(driver: Driver, out: int, size: int, handle: int, name: int) -> None:
    _library(driver, handle)
    raise DriverError(Result.NOT_FOUND, f"no managed variable or function {_name(name)!r}")


# ---- kernels ----


def function_of(driver: Driver, handle: int, context: Context) -> Function:
    """The function of a handle, of either kind, on the device of a context."""
    found = driver.handles.get(handle)
    if type(found) is Function:
        return found
    if type(found) is Kernel:
        return found.code.function(driver, found.name, context)
    return driver.find(handle, Function, "function")


def kernel_on(driver: Driver, handle: int, ordinal: int) -> Function:
    """A library's kernel on a device."""
    device = driver.device(ordinal)
    kernel = driver.find(handle, Kernel, "kernel")
    context = device.primary or Context(0, device, True)
    return kernel.code.function(driver, kernel.name, context)


@exports("cuKernelGetFunction", "op")
def kernel_function(driver: Driver, out: int, handle: int) -> None:
    driver.find(handle, Kernel, "kernel")
    put_word(out, function_of(driver, handle, driver.current()).handle)


@exports("cuKernelGetLibrary", "op", Needs.INIT)
def kernel_library(driver: Driver, out: int, handle: int) -> None:
    put_word(out, driver.find(handle, Kernel, "kernel").code.handle)


@exports("cuFuncGetModule", "op", Needs.INIT)
def function_module(driver: Driver, out: int, handle: int) -> None:
    put_word(out, driver.find(handle, Function, "function").code.handle)


@exports("cuFuncGetName cuKernelGetName", "op", Needs.INIT)
def function_name(driver: Driver, out: int, handle: int) -> None:
    found = driver.handles.get(handle)
    if type(found) is Kernel:
        name = found.name
    else:
        name = driver.find(handle, Function, "function").kernel.name
    put_word(out, driver.kept(name))


@exports("cuFuncGetParamInfo cuKernelGetParamInfo", "pzop", Needs.INIT)
def parameter_info(driver: Driver, handle: int, index: int, offset: int, size: int) -> None:
    function = function_of(driver, handle, _any_context(driver))
    parameters = function.kernel.parameters
    if index >= len(parameters):
        raise DriverError(Result.INVALID_VALUE, f"no parameter {index} of {len(parameters)}")
    put_word(offset, parameters[index].offset)
    if size:
        put_word(size, parameters[index].size)


@exports("cuFuncIsLoaded", "op", Needs.INIT)
def is_loaded(driver: Driver, out: int, handle: int) -> None:
    driver.find(handle, Function, "function")
    put_int(out, 1)


@exports("cuFuncLoad", "p", Needs.INIT)
def load_function(driver: Driver, handle: int) -> None:
    driver.find(handle, Function, "function")
