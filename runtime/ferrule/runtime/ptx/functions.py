"""The functions of a module of kind `ferrule.ptx`, and its form as a module of tvm-ffi."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any, Final

import tvm_ffi

from ferrule.runtime.abi import SYMBOL_PREFIX
from ferrule.runtime.artefacts import ExportForm, ObjectCode, Stage
from ferrule.runtime.binaries.metadata import Metadata
from ferrule.runtime.binaries.objectfile import read_object
from ferrule.runtime.calls.function import Function, make_function
from ferrule.runtime.cpus import host_architecture
from ferrule.runtime.errors import StageError
from ferrule.runtime.host import libtvm_ffi
from ferrule.runtime.linking.engine import Engine
from ferrule.runtime.ptx.arguments import Packer
from ferrule.runtime.ptx.driver import Image
from ferrule.runtime.ptx.layout import called, kernel_layout
from ferrule.runtime.ptx.payload import KIND, PtxPayload
from ferrule.specs import Signature

_SafeCall: Final = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p
)
"""The C type of a TVM-FFI function."""


class PtxCode:
    """The functions of a payload; their C addresses are valid while this object lives."""

    def __init__(self, payload: PtxPayload) -> None:
        self.payload: Final = payload
        self.signatures: Final = {kernel.name: called(kernel) for kernel in payload.kernels}
        self._image: Final = Image(payload.image, [*self.signatures])
        self._functions: Final = {
            kernel.name: tvm_ffi.convert(_launcher(self._image, kernel))
            for kernel in payload.kernels
        }
        self._calls: Final[dict[str, Any]] = {}
        for name, signature in self.signatures.items():
            self._calls[SYMBOL_PREFIX + name] = _c_function(self._functions[name])
            text = Metadata(signature, host_architecture(), "").text()
            made = tvm_ffi.convert(_giving(text))
            self._calls[f"{SYMBOL_PREFIX}_metadata_{name}"] = _c_function(made)
        # To load a library needs no LLVM. Without it, each call goes through Python.
        self._engine: Final = self._compiled() if find_spec("llvmlite") else None

    def _compiled(self) -> Engine:
        """Machine code for the kernels whose parameters all have kinds that it can read."""
        from ferrule.runtime.llvm.native import compile_native
        from ferrule.runtime.ptx.hot import HotKernel, is_hot, launchers

        hot = []
        for kernel in self.payload.kernels:
            layout, state = kernel_layout(kernel), self._image.states[kernel.name]
            if is_hot(layout):
                slow = int(self._functions[kernel.name].__chandle__())
                hot.append(HotKernel(kernel.name, layout, ctypes.addressof(state), slow))
        return Engine.load(compile_native("launchers", launchers(hot)))

    @property
    def symbols(self) -> Mapping[str, int]:
        """The address of each function, by its symbol in a library."""
        found = {symbol: _address(call) for symbol, (call, _) in self._calls.items()}
        if self._engine is not None:
            defined = read_object(self._engine.code.data).defined
            # Machine code instead of the function in Python, which it calls in the other cases.
            found.update((symbol, self._engine.address(symbol)) for symbol in defined)
        return found

    def function(self, name: str) -> Function:
        """The function that launches a kernel."""
        address, signature = self.symbols[SYMBOL_PREFIX + name], self.signatures[name]
        return make_function(address, signature, PtxOrigin(self.payload), owner=self)


def _address(call: Any) -> int:
    return int(ctypes.cast(call, ctypes.c_void_p).value or 0)


def _launcher(image: Image, kernel: Signature) -> Callable[..., None]:
    packer = Packer(kernel)

    def launch(*values: Any) -> None:
        packed = packer.pack(values)
        # The driver refuses a grid without blocks; here it is a launch of nothing.
        if 0 not in packed.sizes.grid:
            image.launch(kernel.name, packed)

    return launch


def _giving(text: str) -> Callable[[], str]:
    return lambda: text


def _c_function(made: tvm_ffi.Function) -> tuple[Any, tvm_ffi.Function]:
    """A C function that forwards to `made`, and the objects to keep alive with it."""
    call = libtvm_ffi().TVMFFIFunctionCall
    handle = ctypes.c_void_p(made.__chandle__())

    def forward(_: Any, args: Any, count: int, result: Any) -> int:
        pointers = ctypes.c_void_p(args), ctypes.c_int(count), ctypes.c_void_p(result)
        return int(call(handle, *pointers))

    return _SafeCall(forward), made


class PtxOrigin:
    """The `Origin` of a function that launches a kernel of an image."""

    __slots__ = ("_payload",)

    def __init__(self, payload: PtxPayload) -> None:
        self._payload: Final = payload

    def emit(self, name: str, cpu: str, triple: str) -> ObjectCode:
        """StageError: the function has no code of its own."""
        raise StageError(".o", (), _WHY)

    def export(self, name: str, form: ExportForm, system_lib: str | None = None) -> bytes:
        """StageError: only a library that imports the module can contain it."""
        raise StageError(form, (), _WHY)

    def text(self, stage: Stage) -> str:
        """The PTX, if the image is PTX text; StageError otherwise."""
        if stage == "ptx" and self._payload.is_text:
            return self._payload.image.decode()
        raise StageError(stage, ("ptx",) if self._payload.is_text else (), _WHY)


_WHY: Final = (
    f"the function launches a kernel of a module of kind {KIND}, which is written as an import of "
    "another module"
)


def makers(payload: PtxPayload) -> dict[str, Callable[[], Function]]:
    """A maker for each function, by name; all functions share one image."""
    shared: list[PtxCode] = []

    def make(name: str) -> Function:
        if not shared:
            shared.append(PtxCode(payload))
        return shared[0].function(name)

    def maker(name: str) -> Callable[[], Function]:
        return lambda: make(name)

    return {kernel.name: maker(kernel.name) for kernel in payload.kernels}


def symbols_under(prefix: str, code: PtxCode) -> Sequence[tuple[str, int]]:
    """The symbols to register for a system library of this prefix."""
    found = []
    for symbol, address in code.symbols.items():
        special = symbol.startswith(f"{SYMBOL_PREFIX}_metadata_")
        name = symbol.removeprefix(SYMBOL_PREFIX)
        known = f"{prefix}{symbol}" if special else f"{SYMBOL_PREFIX}{prefix}{name}"
        found.append((known, address))
    return found
