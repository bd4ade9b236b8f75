"""`CompiledOrigin`: the modules of a compiled function, and its object for each name and CPU.

Modules are stored unoptimised.  For another export name only the wrapper is generated again,
because its symbol and its messages contain the name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from ferrule.compiler import assemble, targets
from ferrule.compiler.artefacts import Body, HostModule, Kept, Pages
from ferrule.compiler.cuda.code import DeviceCode
from ferrule.compiler.exports import ExportTarget, export_target
from ferrule.compiler.wrapper.builder import WrapperParts, wrapper_parts
from ferrule.compiler.wrapper.callee import BodyCall
from ferrule.runtime.abi import SYMBOL_PREFIX
from ferrule.runtime.artefacts import (
    ExportForm,
    KernelInfo,
    ObjectCode,
    OperatorCode,
    Remarks,
    Stage,
)
from ferrule.runtime.binaries.metadata import DeviceImage, Metadata
from ferrule.runtime.entry.key import ANY_FUNCTION, CallTraits
from ferrule.runtime.errors import NoKernelsError, StageError
from ferrule.runtime.forks import ForkLock
from ferrule.specs import Signature
from ferrule.specs.overloads import Overloads

if TYPE_CHECKING:
    from ferrule.compiler.cache.keys import Key
    from ferrule.runtime.calls.function import Function

_NO_NOTES: Final[Mapping[str, Any]] = MappingProxyType({})
_NO_SOURCES: Final[Mapping[str, Function]] = MappingProxyType({})


def host_module(signature: Signature, body: Body, opt_level: int = 3) -> HostModule:
    """A body with the wrapper that checks the signature's arguments and calls it."""
    wrapper = parts_of(signature, body)
    return HostModule(signature, wrapper.text(), body, opt_level, needed=wrapper.needed)


def parts_of(signature: Signature, body: Body) -> WrapperParts:
    """The parts of the wrapper of a body."""
    callee = BodyCall(body)
    faults = callee.faults(signature)
    return wrapper_parts(signature, callee, body.relations, faults, body.location)


def _device_images(code: DeviceCode) -> Iterator[DeviceImage]:
    from ferrule.compiler.cuda.launcher.images import best_first, images_of

    for image in best_first(images_of(code)):
        assert image.arch is not None
        kind = "cubin" if image.is_cubin else "ptx"
        yield DeviceImage.of(kind, image.arch, code.kernels, image.data)


class CompiledOrigin:
    """The `runtime.Origin` of a function compiled in this process.

    It is thread-safe, and makes the object for a name, CPU and triple at most once.
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
        "_remarks",
        "pages",
        "_sources",
        "_target",
        "_traits",
        "key",
        "warned",
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
        remarks: Callable[[], Remarks] | None = None,
        pages: Pages | None = None,
        notes: Mapping[str, Any] = _NO_NOTES,
    ) -> None:
        """`ir` is the text of the kernel IR or of a convention's steps, or a function that makes it
        on demand.  `target` is the target of `export`, by default the baseline CPU of this
        machine's platform; `doc` and `traits` are the docstring and the traits of the exported
        function.  `sources` are functions that the code needs, by symbol.  `mlir` makes the kernel
        IR as MLIR, `remarks` says what became of its loops, `pages` make a page about it.  `notes`
        are stored in files.
        """
        self.key: Key | None = None
        """Of the cache, where it keeps the function."""
        self.warned = False
        """Whether the compilation gave warnings, which belong to each compilation."""
        self._notes: Final = notes
        self._mlir: Final = mlir
        self._remarks: Remarks | Callable[[], Remarks] | None = remarks
        self.pages: Final = pages
        self._sources: Final = sources
        self._module: Final = module
        self._ir = ir
        self._doc: Final = _writable(doc)
        self._target: Final = target
        self._traits: Final = traits
        self._files: Final[dict[tuple[str, ExportForm, str | None], bytes]] = {}
        self._objects: Final[dict[tuple[str, str, str], ObjectCode]] = {}
        self._lock: Final = ForkLock()  # a finaliser may call while this thread holds it

    @property
    def module(self) -> HostModule:
        """Body and wrapper under the function's own name."""
        return self._module

    @property
    def sources(self) -> Mapping[str, Function]:
        """The functions of other objects that the code calls, by symbol."""
        return self._sources

    @property
    def ir(self) -> str:
        """The kernel IR, or the steps of a convention; "" if there are none."""
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
        """The notes that the maker of the function passed to `build`."""
        return self._notes

    @property
    def target(self) -> ExportTarget | None:
        """The target of `export`; None for the baseline of this platform."""
        return self._target

    @property
    def traits(self) -> CallTraits:
        """The needs of a call of the function: whether it takes long, uses streams, allocates."""
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

        With the prefix `system_lib`, it has a constructor that registers them.
        """
        key = (name, form, system_lib)
        with self._lock:
            data = self._files.get(key)
            if data is None:
                data = self._files[key] = self._export(*key)
            return data

    def _export(self, name: str, form: ExportForm, system_lib: str | None) -> bytes:
        from ferrule.compiler.describe import describe
        from ferrule.compiler.support.describing import described_data

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
        if form != ".o":
            return data
        from ferrule.runtime.binaries.digest import sealed_object

        return sealed_object(data)

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

    def operator(self, name: str, operator: str, out: Sequence[str]) -> OperatorCode:
        """The object that registers the exported function as an operator of PyTorch."""
        from ferrule.compiler.operators.torch.exporting import operator_code

        chosen = export_target() if self._target is None else self._target
        return operator_code(self._module.signature, name, operator, out, chosen.target)

    def handler(self, name: str, symbol: str, out: Sequence[str] | None) -> OperatorCode:
        """The object that defines a handler of XLA for the exported function."""
        from ferrule.compiler.operators.jax.exporting import handler_code

        chosen = export_target() if self._target is None else self._target
        return handler_code(self._module.signature, name, symbol, out, chosen.target)

    def wrapper_text(self) -> str:
        """Wrapper, body and support code as one LLVM module, with the description of the
        function."""
        from ferrule.compiler.describe import describe

        self._check_exportable()
        chosen = export_target() if self._target is None else self._target
        name, metadata = self._module.signature.name, self._metadata(self._module, chosen)
        description = describe(name, metadata.text(), self._doc, chosen.target.triple)
        return assemble.wrapper_text(self._module, chosen.target, description)

    def _check_exportable(self) -> None:
        """StageError if the code calls an address of this process."""
        here = [link for link in self._module.body.links if link.address is not None]
        if here:
            raise StageError(
                ".o",
                ("ir", "llvm", "asm"),
                f"it calls the address {here[0].address:#x}, which means something in this process "
                f"alone: give the code as an object file, LLVM IR or the symbol of a library",
            )

    def text(self, stage: Stage) -> str:
        """The text of a stage: the kernel IR, the stored LLVM modules, or the assembly for this
        machine."""
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

    def remarks(self) -> Remarks:
        """What became of each loop and launch, asked once.

        StageError if the function was not compiled from Python for the CPU.
        """
        found = self._remarks
        if found is None:
            why = "only what was compiled from one Python function for the CPU has them"
            raise StageError("remarks", ("llvm", "asm"), why)
        if not isinstance(found, Remarks):
            found = self._remarks = found()
        return found

    def report(self, kept: Kept | None = None) -> str:
        """A page in HTML about the compilation, made anew each time; `kept` by default says that it
        was compiled here.

        StageError if the function was not compiled from Python.
        """
        if self.pages is None:
            why = "only what was compiled from Python has one"
            raise StageError("report", ("llvm", "asm"), why)
        return self.pages.show([make() for make in self.pages.subjects], kept or self._kept())

    def _kept(self) -> Kept:
        if self.key is None:
            return Kept("compiled by this process; the cache does not keep it")
        text = f"compiled by this process; the cache keeps it as {self.key.digest[:12]}"
        return Kept(text, tuple(self.key.parts))

    def ptx(self) -> Mapping[str, str]:
        """The PTX of the kernels by architecture.  StageError if the function has no PTX."""
        found = self._device_code().ptx
        if not found:
            raise StageError("ptx", ("llvm", "asm"), "its kernels came as cubins alone")
        return found

    def kernel_info(self) -> Mapping[str, Mapping[str, KernelInfo]]:
        """The resources that each kernel uses, by architecture and name.

        StageError if there are no GPU kernels, CompileError if there is no assembler.
        """
        from ferrule.compiler.cuda.assembly import kernel_info

        return kernel_info(self._device_code())

    def _device_code(self) -> DeviceCode:
        code = self._module.body.device_code
        if code is None:
            why = "it has no kernels for a GPU (--target cuda makes them)"
            raise NoKernelsError("ptx", ("ir", "llvm", "asm"), why)
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
            from ferrule.compiler.overloading import overload_module

            return overload_module(signature, module.candidates)
        return host_module(signature, module.body, module.opt_level)


def _writable(doc: str | None) -> str | None:
    """A docstring with escapes for what UTF-8 does not have: files are written with it."""
    if doc is None or doc.isascii():
        return doc
    return doc.encode("utf-8", "backslashreplace").decode()
