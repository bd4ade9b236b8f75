"""CUDA C++: `fe.frontends.cuda.compile(source, signature, …)`.

    n = specs.sym_int32()
    sig = specs.Signature("scale", (specs.Tensor("x", (n,), "f32"), specs.Scalar("a", Float32)))
    fn = fe.frontends.cuda.compile(
        "template <class T> __global__ void scale(T* x, T a, int n) { … }", sig,
        kernel="scale<float>", params=[sig["x"].data, sig["a"], n],
        grid=specs.ceil_div(n, 256), block=256, target="sm_90",
    )

`module` compiles a source whose kernels are launched in several places.  The compiler is NVRTC,
from the packages `cuda-bindings` and `nvidia-cuda-nvrtc`; if it is missing, it is the nvcc of a
toolkit.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.compiler.mangled import by_spoken_names
from ferrule.compiler.options import Options, default_environment
from ferrule.frontends.cuda.hostparts import without_host
from ferrule.frontends.cuda.knowing import facts_of
from ferrule.frontends.cuda.nvcc import compile_nvcc, find_nvcc
from ferrule.frontends.cuda.nvrtc import compile_nvrtc, find_nvrtc
from ferrule.frontends.cuda.requests import FORMS, Form, Made, Request
from ferrule.frontends.given import architectures, check_signature, emulates_gpu, texts
from ferrule.frontends.launchsizes import checked_sizes
from ferrule.frontends.sources import SourceLike, in_order, read_source, search_words
from ferrule.frontends.strides import Asked
from ferrule.specs.deferred import dataclass

if TYPE_CHECKING:
    from ferrule.compiler.conventions import CudaLaunch
    from ferrule.compiler.conventions.apart import Memory
    from ferrule.compiler.conventions.arguments import Argument
    from ferrule.compiler.cuda.code import DeviceCode
    from ferrule.runtime import Function
    from ferrule.specs import Dim, Param, Signature
    from ferrule.specs.params import Tensor

__all__ = ["CudaSource", "compile", "module"]


@dataclass(frozen=True, slots=True)
class CudaSource:
    """A compiled source: `code` contains its kernels, `names` maps their names in the source to
    those in `code`.

    `log` is the output of the compiler, such as warnings.
    """

    code: DeviceCode
    names: Mapping[str, str]
    log: str

    def kernel(self, name: str | None = None) -> str:
        """The name in `code` of a kernel with this name in the source; None stands for the only
        one.

        Raises CompileError if there is no such kernel or more than one; the message lists the
        kernels.
        """
        if name is None and len(self.code.kernels) == 1:
            return self.code.kernels[0]
        found = None if name is None else self.names.get(name, name)
        if found in self.code.kernels:
            return found
        said = f"{len(self.code.kernels)} kernels" if name is None else f"no kernel {name!r}"
        raise CompileError(
            Diagnostic(
                f"the source has {said}",
                expected=", ".join(self.names),
                hint="name the one to launch, kernel=…" if name is None else None,
            )
        )

    def launch(
        self,
        kernel: str | None,
        params: Sequence[Argument],
        grid: Dim | Sequence[Dim],
        block: Dim | Sequence[Dim],
        smem: Dim | None = None,
        **more: Any,
    ) -> CudaLaunch:
        """The launch of a kernel by its name in the source; `more` is as for `CudaLaunch`."""
        from ferrule.compiler.conventions import CudaLaunch

        return CudaLaunch(self.code, self.kernel(kernel), params, grid, block, smem, **more)


def compile(
    source: SourceLike,
    signature: Signature,
    *,
    kernel: str | None = None,
    params: Sequence[Argument] | None = None,
    grid: Dim | Sequence[Dim] | Callable[[Signature], Any],
    block: Dim | Sequence[Dim],
    smem: Dim | None = None,
    cluster: Dim | Sequence[Dim] | None = None,
    stream: Param | None = None,
    cooperative: bool = False,
    use_pdl: bool = False,
    constants: Mapping[str, object] | None = None,
    apart: Sequence[Memory] | None = None,
    target: str | Sequence[str] | None = None,
    compiler: str | None = None,
    include_paths: Sequence[str | os.PathLike[str]] = (),
    defines: Mapping[str, object] | None = None,
    flags: Sequence[str] = (),
    std: str = "c++17",
    fast_math: bool = False,
    line_info: bool | None = None,
    form: Form | None = None,
    results: Sequence[Tensor | str] = (),
    zero: bool | str | Sequence[str] = (),
    doc: str | None = None,
    options: str | Options | None = None,
) -> Function:
    """A function with this signature that launches a kernel of a CUDA C++ source.

    `source` is the text or the path of a file.  `kernel` is the kernel's name or a name expression,
    `scale<float>`; by default the one with the name of the signature, or the only one.  `params`
    are its arguments, see `compiler.conventions`; by default the addresses of the signature's
    tensors and its numbers, in their order.  `grid`, `block`, `smem`, `cluster`, `stream`,
    `cooperative`, `use_pdl`, `constants` and `apart` are as for `CudaLaunch`; `grid` may be a
    function of the signature, too; where sizes differ between calls it must not be constant, unless
    it is marked by `fe.frontends.fixed`.  `results`, `zero`, `doc` and `options` are as for
    `compiler.build`, the others as for `module`.  The arguments are compared with the kernel's
    parameters: types behind pointers, signedness of integers, floats and bool.

    Raises ImportError if there is no compiler; CompileError if the compiler rejects the source
    (with its messages), and for arguments that do not match the kernel's parameters; OSError for a
    file that cannot be read.
    """
    from ferrule.compiler.building import build
    from ferrule.frontends.examples import named_results

    check_signature(signature, "cuda.compile")
    if kernel == "" or not isinstance(kernel, str | None):
        kind = ValueError if kernel == "" else TypeError
        raise kind(f"kernel must be the name of one kernel, but got {kernel!r}")
    asked = Asked.of(signature)
    sizes = checked_sizes("grid", grid, asked.signature)
    named = read_source(source, f"{signature.name}.cu")
    names = () if kernel is None else (kernel,)
    compiled = module(
        named.text if named.folder is None else named.name,
        names,
        name=named.name,
        target=target,
        compiler=compiler,
        include_paths=include_paths,
        defines=defines,
        flags=flags,
        std=std,
        fast_math=fast_math,
        line_info=line_info,
        form=form,
    )
    if kernel is None and signature.name in compiled.names:
        kernel = signature.name
    launch = compiled.launch(
        kernel,
        in_order(signature) if params is None else params,
        sizes,
        block,
        smem,
        cluster=cluster,
        stream=stream,
        cooperative=cooperative,
        use_pdl=use_pdl,
        constants=constants,
        apart=apart,
    )
    left, made = named_results(signature, results)
    return build(left, asked.held(launch), results=made, zero=zero, doc=doc, options=options)


def module(
    source: SourceLike,
    kernels: Sequence[str] = (),
    *,
    name: str = "kernels.cu",
    target: str | Sequence[str] | None = None,
    compiler: str | None = None,
    include_paths: Sequence[str | os.PathLike[str]] = (),
    defines: Mapping[str, object] | None = None,
    flags: Sequence[str] = (),
    std: str = "c++17",
    fast_math: bool = False,
    line_info: bool | None = None,
    form: Form | None = None,
) -> CudaSource:
    """The kernels of a CUDA C++ source, the text or the path of a file.

    `kernels` are names and name expressions, such as `ns::scale<float, 4>`; by default all kernels
    that are not templates.  `name` is the name of a source text in messages.  `target` is an
    architecture such as "sm_90a", several, or by default that of `FERRULE_GPU_ARCH` or the first
    GPU: each gets an image, whose `form` is "cubin" or "ptx"; by default "ptx" in a process that
    emulates a GPU, else "cubin".  `compiler` is "nvrtc" or "nvcc"; by default the first that is
    installed.  `defines` are macros with their values.  `fast_math` is `--use_fast_math`,
    `line_info` is `--generate-line-info`, by default only in a process that emulates a GPU, whose
    errors name the lines; `flags` are further options of the compiler.

    Raises the errors of `compile`.
    """
    if form is None:
        form = "ptx" if emulates_gpu() else "cubin"
    if form not in FORMS:
        raise ValueError(f"form must be one of {', '.join(map(repr, FORMS))}, but got {form!r}")
    if not isinstance(std, str):
        raise TypeError(f"std must be a text, such as 'c++17', but got {std!r}")
    names = (kernels,) if isinstance(kernels, str) else texts("kernels", kernels)
    read = read_source(source, name)
    search = search_words(read, include_paths, defines or {})
    wanted = tuple(each for each in names if not each.startswith("_Z"))
    more = texts("flags", flags)
    if line_info is None:
        line_info = emulates_gpu() and _LINES.isdisjoint(more)
    request = Request(read, wanted, form, tuple(search), more, std, fast_math, line_info)
    chosen = _chosen(compiler)
    archs = _archs(target)
    request, first = _device_part(chosen, request, archs[0])
    made = [first, *(_made(chosen, request, arch) for arch in archs[1:])]
    code = _code(read.name, made, [made[0].names.get(each, each) for each in names])
    facts = facts_of(request, made[0], code.kernels, lambda asked: chosen(asked, archs[0]))
    code = replace(code, facts=facts)
    log = "\n".join(dict.fromkeys(each.log for each in made if each.log))
    listed = {each: made[0].names.get(each, each) for each in names}
    return CudaSource(code, listed or by_spoken_names(code.kernels), log)


def _code(name: str, made: Sequence[Made], kernels: Sequence[str]) -> DeviceCode:
    """The code with the kernels of these names, or with all kernels if no names are given."""
    from ferrule.compiler.cuda.code import DeviceCode

    images = [each.image for each in made]
    try:
        return DeviceCode.from_images(images, kernels or None)
    except (CompileError, ValueError) as error:
        said = error.diagnostic.message if isinstance(error, CompileError) else error
        hint = (
            "a template is compiled where it is named, kernel='scale<float>'; a kernel that is "
            "static cannot be launched"
        )
        if kernels:
            hint = "a kernel that is static, or in a namespace without a name, cannot be launched"
        message = f"what {name} was compiled to cannot be used: {said}"
        raise CompileError(Diagnostic(message, hint=hint)) from None


_LINES: Final = {"--generate-line-info", "-lineinfo", "--device-debug", "-G"}
"""Flags that say already whether the code names its lines."""
Compiles = Callable[[Request, str], Made]


def _chosen(compiler: str | None) -> Compiles:
    """The function that compiles a request for an architecture."""
    if compiler not in (None, "nvrtc", "nvcc"):
        raise ValueError(f"compiler must be 'nvrtc' or 'nvcc', but got {compiler!r}")
    nvrtc = find_nvrtc() if compiler != "nvcc" else None
    if nvrtc is not None:
        return partial(compile_nvrtc, nvrtc)
    program = find_nvcc() if compiler != "nvrtc" else None
    if program is not None:
        return partial(compile_nvcc, program)
    wanted = {"nvrtc": "NVRTC", "nvcc": "nvcc", None: "NVRTC or nvcc"}[compiler]
    raise ImportError(
        f"fe.frontends.cuda needs {wanted}, which is not here: pip install 'ferrule[cuda]' brings "
        "NVRTC; nvcc comes with a CUDA toolkit, on PATH or below CUDA_HOME"
    )


def _device_part(compiles: Compiles, request: Request, arch: str) -> tuple[Request, Made]:
    """The request, and its image for an architecture; if the source is rejected, those of the
    source without the functions of the host."""
    try:
        return request, _made(compiles, request, arch)
    except CompileError as error:
        left = without_host(request)
        if not left.names:
            raise
        refused = error
    try:
        return left.request, _made(compiles, left.request, arch)
    except CompileError as error:
        diagnostic = error.diagnostic
        note = f"left out are the functions of the host: {', '.join(left.names)}"
        more = replace(diagnostic, notes=(*diagnostic.notes, note))
        raise CompileError(more) from refused


def _made(compiles: Compiles, request: Request, arch: str) -> Made:
    try:
        return compiles(request, arch)
    except CompileError as error:
        if not request.kernels:
            raise
        refused = error
    try:
        plain = compiles(replace(request, kernels=(), form="cubin"), arch)
    except CompileError:
        raise refused from None
    # Only the names are wrong: the source itself compiles.
    from ferrule.compiler.cuda.binaries.cubins import read_cubin

    known = ", ".join(by_spoken_names([each.kernel for each in read_cubin(plain.image).kernels]))
    raise CompileError(
        Diagnostic(
            str(refused),
            expected=f"of the kernels that are no templates: {known}" if known else None,
            hint="an instance of a template is named as in C++, kernel='scale<float>'",
        )
    ) from None


def _archs(given: str | Sequence[str] | None) -> tuple[str, ...]:
    """The architectures, without duplicates."""
    from ferrule.compiler.cuda.archs import NO_GPU, choose
    from ferrule.runtime.devices import cuda_devices

    lacking = Diagnostic(
        f"CUDA C++ is compiled for an architecture: {NO_GPU}",
        hint='pass target="sm_90a", or several, or set FERRULE_GPU_ARCH, or emulate a GPU: with '
        'fe.emulated_gpu("sm_90a")',
    )
    return choose("target", given, architectures, default_environment(), cuda_devices, lacking)
