"""What a compiled function was made from: its modules, and an object for any name and CPU.

Modules are kept as they were before optimisation.  For another export name only the wrapper is
generated again, because its symbol and its messages carry the name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from ferrule.compiler import assemble, targets
from ferrule.compiler.artefacts import Body, HostModule
from ferrule.compiler.cuda.code import DeviceCode
from ferrule.compiler.cuda.images import best_first, images_of
from ferrule.compiler.describe import describe
from ferrule.compiler.exports import ExportTarget, export_target
from ferrule.compiler.overloading import overload_module
from ferrule.compiler.support.describing import described_data
from ferrule.compiler.wrapper.builder import wrapper_parts
from ferrule.compiler.wrapper.callee import BodyCall
from ferrule.runtime.abi import SYMBOL_PREFIX
from ferrule.runtime.artefacts import ExportForm, KernelInfo, ObjectCode, Stage
from ferrule.runtime.digest import sealed_object
from ferrule.runtime.entry.key import ANY_FUNCTION, CallTraits
from ferrule.runtime.errors import StageError
from ferrule.runtime.forks import ForkLock
from ferrule.runtime.metadata import DeviceImage, Metadata
from ferrule.specs import Signature
from ferrule.specs.overloads import Overloads

if TYPE_CHECKING:
    from ferrule.runtime.function import Function

_NO_NOTES: Final[Mapping[str, Any]] = MappingProxyType({})
_NO_SOURCES: Final[Mapping[str, Function]] = MappingProxyType({})


def host_module(signature: Signature, body: Body, opt_level: int = 3) -> HostModule:
    """A body with the wrapper that checks the signature's arguments and calls it."""
    callee = BodyCall(body)
    faults = callee.faults(signature)
    wrapper = wrapper_parts(signature, callee, body.relations, faults, body.location)
    return HostModule(signature, wrapper.text(), body, opt_level, needed=wrapper.needed)


def _device_images(code: DeviceCode) -> Iterator[DeviceImage]:
    for image in best_first(images_of(code)):
        assert image.arch is not None
        yield DeviceImage("cubin" if image.is_cubin else "ptx", image.arch, code.kernels)


class CompiledOrigin:
    """The `runtime.Origin` of a function that was compiled here.

    Any number of threads may ask; an object is made at most once for a name, CPU and triple.
    """

    __slots__ = (
        "_doc",
        "_files",
        "_ir",
        "_lock",
        "_mlir",
        "_module",
        "_notes",
        "_objects",
        "_sources",
        "_target",
        "_traits",
    )

    def __init__(
        self,
        module: HostModule,
        ir: str | Callable[[], str],
        *,
        doc: str | None = None,
        target: ExportTarget | None = None,
        traits: CallTraits = ANY_FUNCTION,
        sources: Mapping[str, Function] = _NO_SOURCES,
        mlir: Callable[[], str] | None = None,
        notes: Mapping[str, Any] = _NO_NOTES,
    ) -> None:
        """`ir` is the text of the kernel IR, or makes it when it is asked for.  `target` is what
        `export` makes code for, the baseline CPU of this machine's platform by default; `doc` and
        `traits` are the docstring and the traits of what is exported.  `sources` are functions by
        the symbols of them that the code needs.  `mlir` gives the kernel IR as MLIR.  `notes` are
        kept in what is exported.
        """
        self._notes: Final = notes
        self._mlir: Final = mlir
        self._sources: Final = sources
        self._module: Final = module
        self._ir = ir
        self._doc: Final = doc
        self._target: Final = target
        self._traits: Final = traits
        self._files: Final[dict[tuple[str, ExportForm, str | None], bytes]] = {}
        self._objects: Final[dict[tuple[str, str, str], ObjectCode]] = {}
        self._lock: Final = ForkLock()  # a finaliser may ask while its own thread makes an object

    @property
    def module(self) -> HostModule:
        """Body and wrapper under the function's own name."""
        return self._module

    @property
    def sources(self) -> Mapping[str, Function]:
        """The functions that the code calls as those of other objects, by symbol."""
        return self._sources

    @property
    def ir(self) -> str:
        """The kernel IR; "" for code that came from elsewhere."""
        text = self._ir
        if not isinstance(text, str):
            text = self._ir = text()
        return text

    @property
    def doc(self) -> str | None:
        """The docstring."""
        return self._doc

    @property
    def notes(self) -> Mapping[str, Any]:
        """What whoever made the function wrote down."""
        return self._notes

    @property
    def target(self) -> ExportTarget | None:
        """What `export` makes code for; None for the baseline of this platform."""
        return self._target

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
        self._check_exportable()
        chosen = export_target() if self._target is None else self._target
        module, target = self._named(name), chosen.target
        metadata = self._metadata(module, chosen)
        said, more = (name, metadata.text(), self._doc, target.triple), None
        if form == ".o" and system_lib is None and targets.has_assembler(target.triple):
            more = described_data(*said)
        if more is None:
            text, more = describe(*said, system_lib, is_object=form == ".o"), ""
        else:
            text = ""
        data = assemble.export(module, target, text, form, more)
        return sealed_object(data) if form == ".o" else data

    def _metadata(self, module: HostModule, chosen: ExportTarget) -> Metadata:
        code = module.body.device_code
        images = () if code is None else tuple(dict.fromkeys(_device_images(code)))
        return Metadata(
            module.signature,
            chosen.target.triple,
            chosen.target.cpu,
            tuple(sorted({*chosen.needs, *module.body.part.features})),
            images,
            traits=self._traits,
            links=module.body.links,
            notes=self._notes,
        )

    def wrapper_text(self) -> str:
        """Wrapper, body and support code as one LLVM module, with what describes the function."""
        self._check_exportable()
        chosen = export_target() if self._target is None else self._target
        name, metadata = self._module.signature.name, self._metadata(self._module, chosen)
        description = describe(name, metadata.text(), self._doc, chosen.target.triple)
        return assemble.wrapper_text(self._module, chosen.target, description)

    def _check_exportable(self) -> None:
        """StageError for code that calls an address of this process."""
        here = [link for link in self._module.body.links if link.address is not None]
        if here:
            raise StageError(
                ".o",
                ("ir", "llvm", "asm"),
                f"it calls the address {here[0].address:#x}, which means something in this process "
                f"alone: give the code as an object file, LLVM IR or the symbol of a library",
            )

    def text(self, stage: Stage) -> str:
        """The kernel IR; the LLVM modules as they are kept; the assembly for this machine."""
        match stage:
            case "ir":
                if not self.ir:
                    raise StageError("ir", ("llvm", "asm"), "its code came from elsewhere")
                return self.ir
            case "mlir":
                if self._mlir is None:
                    why = "only what was compiled from one Python function has it"
                    raise StageError("mlir", ("llvm", "asm"), why)
                return self._mlir()
            case "llvm":
                return f"{self._module.wrapper}\n{self._module.body.text}"
            case "asm":
                here = targets.host()
                return assemble.assembly_text(self._module, here.cpu, here.triple)
            case "ptx":
                return "\n".join(self.ptx().values())

    def ptx(self) -> Mapping[str, str]:
        """The PTX of the kernels by architecture.  StageError where there are none for a GPU."""
        found = self._device_code().ptx
        if not found:
            raise StageError("ptx", ("llvm", "asm"), "its kernels came as cubins alone")
        return found

    def kernel_info(self) -> Mapping[str, Mapping[str, KernelInfo]]:
        """What each kernel takes of a GPU, by architecture and name.

        StageError where there are none for a GPU, CompileError where there is no assembler.
        """
        from ferrule.compiler.cuda.assembling import kernel_info

        return kernel_info(self._device_code())

    def _device_code(self) -> DeviceCode:
        code = self._module.body.device_code
        if code is None:
            why = "it has no kernels for a GPU (--target cuda makes them)"
            raise StageError("ptx", ("ir", "llvm", "asm"), why)
        return code

    def _named(self, name: str) -> HostModule:
        if name == self._module.signature.name:
            return self._module
        if any(link.symbol == SYMBOL_PREFIX + name for link in self._module.body.links):
            raise ValueError(
                f"{self._module.signature.name} calls the extern function {name!r}, so it cannot "
                f"be exported under that name"
            )
        module = self._module
        signature = module.signature.renamed(name)
        if isinstance(signature, Overloads):
            return overload_module(signature, module.candidates)
        return host_module(signature, module.body, module.opt_level)
