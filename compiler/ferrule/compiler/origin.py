"""What a compiled function was made from: its modules, and an object for any name and CPU.

Modules are kept as they were before optimisation.  For another export name only the wrapper is
generated again, because its symbol and its messages carry the name.
"""

from __future__ import annotations

from threading import Lock
from typing import Final

from ferrule.compiler import assemble, targets
from ferrule.compiler.artefacts import Body, HostModule
from ferrule.compiler.conventions import BodyCall, CallingConvention
from ferrule.compiler.wrapper.builder import build_wrapper
from ferrule.runtime.artefacts import ObjectCode, Stage
from ferrule.runtime.errors import StageError
from ferrule.specs import Signature


def host_module(
    signature: Signature,
    body: Body,
    opt_level: int = 3,
    convention: CallingConvention | None = None,
) -> HostModule:
    """A body with the wrapper that checks the signature's arguments and calls it.

    `convention` is how it is called, as `Body` documents it by default.
    """
    chosen = convention or BodyCall(body)
    faults = chosen.faults(signature)
    wrapper = build_wrapper(signature, chosen, body.relations, faults, location=body.location)
    return HostModule(signature, wrapper, body, opt_level, convention)


class CompiledOrigin:
    """The `runtime.Origin` of a function that was compiled here.

    Any number of threads may ask; an object is made at most once for a name, CPU and triple.
    """

    __slots__ = ("_ir", "_lock", "_module", "_objects")

    def __init__(self, module: HostModule, ir: str) -> None:
        self._module: Final = module
        self._ir: Final = ir
        self._objects: Final[dict[tuple[str, str, str], ObjectCode]] = {}
        self._lock: Final = Lock()

    @property
    def module(self) -> HostModule:
        """Body and wrapper under the function's own name."""
        return self._module

    def emit(self, name: str, cpu: str, triple: str) -> ObjectCode:
        """The object that exports `__tvm_ffi_<name>`."""
        key = (name, cpu, triple)
        with self._lock:
            code = self._objects.get(key)
            if code is None:
                module = self._named(name)
                code = self._objects[key] = assemble.assemble(module, name, cpu, triple)
            return code

    def text(self, stage: Stage) -> str:
        """The kernel IR; the LLVM modules as they are kept; the assembly for this machine."""
        match stage:
            case "ir":
                return self._ir
            case "llvm":
                return f"{self._module.wrapper}\n{self._module.body.text}"
            case "asm":
                here = targets.host()
                return assemble.assembly_text(self._module, here.cpu, here.triple)
            case "ptx":
                code = self._module.body.device_code
                if code is None:
                    why = "it has no kernels for a GPU (--target cuda makes them)"
                    raise StageError(stage, ("ir", "llvm", "asm"), why)
                return code.ptx

    def _named(self, name: str) -> HostModule:
        if name == self._module.signature.name:
            return self._module
        module = self._module
        signature = module.signature.renamed(name)
        return host_module(signature, module.body, module.opt_level, module.convention)
