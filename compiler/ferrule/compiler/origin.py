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
from ferrule.compiler.describe import describe
from ferrule.compiler.exports import ExportTarget, export_target
from ferrule.compiler.wrapper.builder import build_wrapper
from ferrule.runtime.artefacts import ExportForm, ObjectCode, Stage
from ferrule.runtime.entry.key import ANY_FUNCTION, CallTraits
from ferrule.runtime.errors import StageError
from ferrule.runtime.metadata import DeviceImage, Metadata
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

    __slots__ = ("_doc", "_files", "_ir", "_lock", "_module", "_objects", "_target", "_traits")

    def __init__(
        self,
        module: HostModule,
        ir: str,
        *,
        doc: str | None = None,
        target: ExportTarget | None = None,
        traits: CallTraits = ANY_FUNCTION,
    ) -> None:
        """`target` is what `export` makes code for, the baseline CPU of this machine's platform by
        default; `doc` and `traits` are the docstring and the traits of what is exported.
        """
        self._module: Final = module
        self._ir: Final = ir
        self._doc: Final = doc
        self._target: Final = target
        self._traits: Final = traits
        self._files: Final[dict[tuple[str, ExportForm, str | None], bytes]] = {}
        self._objects: Final[dict[tuple[str, str, str], ObjectCode]] = {}
        self._lock: Final = Lock()

    @property
    def module(self) -> HostModule:
        """Body and wrapper under the function's own name."""
        return self._module

    @property
    def traits(self) -> CallTraits:
        """What a call of the function needs."""
        return self._traits

    def emit(self, name: str, cpu: str, triple: str) -> ObjectCode:
        """The object that exports `__tvm_ffi_<name>`."""
        key = (name, cpu, triple)
        with self._lock:
            code = self._objects.get(key)
            if code is None:
                module = self._named(name)
                code = self._objects[key] = assemble.assemble(module, name, cpu, triple)
            return code

    def export(self, name: str, form: ExportForm, system_lib: str | None = None) -> bytes:
        """The code that exports `__tvm_ffi_<name>`, with its metadata and docstring.

        With the prefix `system_lib` it has a constructor that registers them.
        """
        key = (name, form, system_lib)
        with self._lock:
            data = self._files.get(key)
            if data is None:
                data = self._files[key] = self._export(*key)
            return data

    def _export(self, name: str, form: ExportForm, system_lib: str | None) -> bytes:
        chosen = export_target() if self._target is None else self._target
        module, target = self._named(name), chosen.target
        code = module.body.device_code
        images = () if code is None else (DeviceImage("ptx", code.arch, code.kernels),)
        metadata = Metadata(
            module.signature, target.triple, target.cpu, chosen.needs, images, traits=self._traits
        )
        text = describe(name, metadata.text(), self._doc, target.triple, system_lib)
        return assemble.export(module, target, text, form)

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
