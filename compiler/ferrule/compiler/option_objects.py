"""Options as objects, CuTe DSL's way to give them: `fe.compile[fe.OptLevel(2), fe.KeepPTX](f, a)`.

Each changes `Options` as its text would.  What ferrule does not have is refused when it is used.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final, NoReturn

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.compiler.options import Options, parse_options


class OptionObject:
    """An option: of a class that is one by itself, or of an object with its value."""

    def __init__(self, value: Any = True) -> None:
        self.value = value

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.value!r})"

    def applied(self, options: Options) -> Options:
        """The options with this one."""
        raise NotImplementedError


class _Field(OptionObject):
    """An option that is a field of `Options`."""

    field = ""

    def applied(self, options: Options) -> Options:
        """The options with the field set."""
        changed: dict[str, Any] = {self.field: self.value}
        return replace(options, **changed)


class OptLevel(_Field):
    """LLVM's optimisation level, 0 to 3."""

    field = "opt_level"


class PtxasOptions(_Field):
    """Options of ptxas, as one text."""

    field = "ptxas_options"


class EnableAssertions(_Field):
    """Checks inside of functions on the CPU: `enable_checks`."""

    field = "enable_checks"


class GenerateLineInfo(_Field):
    """Lines of the source for profilers."""

    field = "generate_line_info"


class KeepPTX(_Field):
    """Write the PTX into a file."""

    field = "keep_ptx"


class KeepCUBIN(_Field):
    """Write the cubin into a file."""

    field = "keep_cubin"


class GPUArch(_Field):
    """The architecture of kernels, such as "sm_90a"."""

    field = "gpu_arch"


class EnableTVMFFI(_Field):
    """Without effect: every function is a TVM-FFI function."""

    field = "enable_tvm_ffi"


class _Absent(OptionObject):
    """An option of CuTe DSL that ferrule does not have; false ones ask for nothing."""

    instead = ""

    def applied(self, options: Options) -> Options:
        """Refused, unless it is off."""
        if self.value in (False, None):
            return options
        self._refuse()

    def _refuse(self) -> NoReturn:
        name = type(self).__name__
        raise CompileError(Diagnostic(f"ferrule has no option {name}", hint=self.instead))


class KeepSASS(_Absent):
    """ferrule writes no SASS."""

    instead = "keep the cubin, fe.KeepCUBIN, and disassemble it with nvdisasm"


class NvdisasmOptions(_Absent):
    """ferrule does not run nvdisasm."""

    instead = KeepSASS.instead


class LinkLibraries(_Absent):
    """ferrule links no libraries of device code into kernels."""

    instead = "fe.frontends.cuda compiles CUDA C++ with libraries"


class RDC(_Absent):
    """Kernels of ferrule are whole programs."""

    instead = "fe.export_library joins functions into one library"


class DeviceTarget(_Absent):
    """The target is said by `--target` and `--gpu-arch`."""

    instead = 'options="--target cuda --gpu-arch sm_90a", or fe.GPUArch("sm_90a")'


class RemarkFilter(_Absent):
    """Remarks of a function are asked for after the compilation."""

    instead = "compiled.remarks has what LLVM says of its loops"


class RemarkOutput(_Absent):
    """See `RemarkFilter`."""

    instead = RemarkFilter.instead


class FrontendNext(OptionObject):
    """Without effect: ferrule has one frontend."""

    def applied(self, options: Options) -> Options:
        """The options as they are."""
        return options


NAMES: Final = tuple(
    each.__name__
    for each in (
        *(OptLevel, PtxasOptions, EnableAssertions, GenerateLineInfo, KeepPTX, KeepCUBIN),
        *(GPUArch, EnableTVMFFI, KeepSASS, NvdisasmOptions, LinkLibraries, RDC, DeviceTarget),
        *(RemarkFilter, RemarkOutput, FrontendNext),
    )
)


def with_objects(options: str | Options | None, chosen: Any) -> Options:
    """The options with these objects, in order. Raises CompileError for an object of another
    kind."""
    result = parse_options(options)
    for each in chosen if isinstance(chosen, tuple) else (chosen,):
        found = each() if isinstance(each, type) and issubclass(each, OptionObject) else each
        if not isinstance(found, OptionObject):
            raise CompileError(
                Diagnostic(
                    f"fe.compile[...] got {each!r}",
                    expected=f"options as objects: {', '.join(NAMES)}",
                    hint="write fe.compile[fe.OptLevel(2)](function, *examples)",
                )
            )
        result = found.applied(result)
    return result
