"""C: `fe.frontends.c.compile(source, signature, …)`, through an installed C compiler.

    sig = specs.Signature("axpy", …)
    fn = fe.frontends.c.compile("void axpy(const float* x, float* y, int n, float a) { … }", sig,
                                arguments=[sig["x"].data, sig["y"].data, n, sig["a"]])

The compiler runs once, when the function is made: its object code is a part of the function and of
each export of it.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.frontends.ccompilers import compiler_words
from ferrule.frontends.given import check_signature, texts
from ferrule.frontends.sources import (
    Source,
    SourceLike,
    hint_for_headers,
    in_order,
    read_source,
    search_words,
)

if TYPE_CHECKING:
    from ferrule.compiler.conventions.apart import Memory
    from ferrule.compiler.conventions.c.host_arguments import CArgument
    from ferrule.compiler.conventions.c.returns import Returns
    from ferrule.compiler.hostcode import HostCode
    from ferrule.compiler.options import Options
    from ferrule.frontends.cheaders import Library
    from ferrule.frontends.cheaders.calls import Size
    from ferrule.frontends.cheaders.contexts import Context
    from ferrule.runtime import Function
    from ferrule.specs import Signature
    from ferrule.specs.params import Tensor

__all__ = ["compile", "library", "module"]

_ALWAYS: Final = ("-c", "-fPIC", "-ffunction-sections", "-fdata-sections")
"""What a function does not need can be left out only where it is in a section of its own."""
_USUAL: Final = ("-O2",)
_LONGEST: Final = 300
_OF_CLANG: Final = (b"ext_vector_type", b"__builtin_elementwise_", b"__builtin_nontemporal_")
_ASSEMBLY: Final = (".s", ".S")


def compile(
    source: SourceLike,
    signature: Signature,
    *,
    function: str | None = None,
    arguments: Sequence[CArgument] | None = None,
    returns: Returns = None,
    variadic_from: int | None = None,
    cc: str | None = None,
    include_paths: Sequence[str | os.PathLike[str]] = (),
    defines: Mapping[str, object] | None = None,
    flags: Sequence[str] = _USUAL,
    libraries: Sequence[str] = (),
    apart: Sequence[Memory] | None = None,
    results: Sequence[Tensor | str] = (),
    zero: bool | str | Sequence[str] = (),
    doc: str | None = None,
    options: str | Options | None = None,
) -> Function:
    """A function with this signature that calls a function of a C source.

    `source` is the text or the path of a file.  `function` is the name of the C function, by
    default that of the signature.  `arguments`, `returns` and `variadic_from` are as for
    `conventions.CFunction`; by default it gets the addresses of the signature's tensors and its
    numbers, in their order, and returns nothing.  The function's parameter and result types are
    compared with them; `conventions.cast(x.data, "struct point*")` passes an address as another
    type on purpose.  `apart` are tensors that must not share memory: a call in which they do raises
    ValueError.  By default they are the tensors of parameters that the function declares
    `restrict`.  Of a file with many functions only what this one needs becomes a part of it.
    `results` are names of tensors of the signature, which each call then
    allocates and returns, or specs of others; `zero`, `doc` and `options` are as for
    `compiler.build`, the others as for `module`.

    Raises CompileError if there is no compiler, if the compiler rejects the source (with its
    messages), and for arguments that do not match the function's parameters; OSError for a file
    that cannot be read.
    """
    from ferrule.compiler.building import build
    from ferrule.compiler.conventions import CFunction
    from ferrule.compiler.conventions import Sequence as Steps
    from ferrule.frontends.callchecks import called_as_declared, checks_before
    from ferrule.frontends.examples import named_results
    from ferrule.frontends.prototypes import check_call

    check_signature(signature, "c.compile")
    read = read_source(source, f"{signature.name}.c")
    search = search_words(read, include_paths, defines or {})
    given = in_order(signature) if arguments is None else arguments
    name = function or signature.name
    code = _code(read, cc, search, flags, libraries, (name, *_frees(given, returns)))
    called = CFunction(name, given, returns=returns, code=code, variadic_from=variadic_from)
    prototype = check_call([*compiler_words(cc), *flags, *search], read, signature, called)
    called = called_as_declared(called, prototype)
    checks = checks_before(called, prototype, apart)
    call = Steps([*checks, called]) if checks else called
    left, made = named_results(signature, results)
    return build(left, call, results=made, zero=zero, doc=doc, options=options)


def _frees(given: Sequence[CArgument], returns: Returns) -> Iterator[str]:
    """The functions of the source that free what the called one has put into an `Out`."""
    from ferrule.compiler.conventions import Out
    from ferrule.compiler.conventions.steps import places_of

    listed = tuple(given) if isinstance(given, list | tuple) else ()
    for each in places_of((listed, returns)):
        if isinstance(each, Out) and each.free is not None and each.free_code is None:
            yield each.free


def module(
    source: SourceLike,
    *,
    name: str = "source.c",
    cc: str | None = None,
    include_paths: Sequence[str | os.PathLike[str]] = (),
    defines: Mapping[str, object] | None = None,
    flags: Sequence[str] = _USUAL,
    libraries: Sequence[str] = (),
    functions: Sequence[str] = (),
) -> HostCode:
    """The functions of a C source, for `conventions.CFunction` and what builds on it.

    `name` is the name of a source text in messages.  `cc` is the compiler: its command, by default
    that of the environment variable CC, else clang, gcc or cc.  `defines` are macros with their
    values, `flags` further options of the compiler: code that needs this machine's CPU
    (`-march=native`) must not be exported to other machines.  `libraries` are the shared libraries
    whose functions the code calls, such as "libz.so.1".  `functions` are those that will be called:
    what they do not need is left out; by default all of the file stays.

    Raises the errors of `compile`, and those of `HostCode.from_object`.
    """
    read = read_source(source, name)
    search = search_words(read, include_paths, defines or {})
    return _code(read, cc, search, flags, libraries, functions)


def library(
    header: SourceLike,
    library: str | os.PathLike[str] | HostCode | None,
    *,
    functions: Sequence[str] | None = None,
    sizes: Mapping[str, Size] | None = None,
    callbacks: Mapping[str, Context] | None = None,
    kept: Sequence[str] = (),
    returns: Mapping[str, Returns] | None = None,
    cc: str | None = None,
    include_paths: Sequence[str | os.PathLike[str]] = (),
    defines: Mapping[str, object] | None = None,
) -> Library:
    """The functions of a shared library, with the types that its header declares.

        zstd = fe.frontends.c.library("zstd.h", "libzstd.so.1",
                                      sizes={"dst": "dstCapacity", "src": "srcSize"})
        size = zstd.ZSTD_compress(dst, src, 3)

    `header` is a path, the name of an installed header, or the text of declarations.  `library` is
    as for `HostCode.from_library`, or a `HostCode`.  `functions` are the names of those that are
    wanted, by default all that the header declares itself.  `sizes` says how long the arrays are
    that a function takes: {"function.parameter": size}, or {"parameter": size} for every function
    that has both; a size is the name of a parameter, which the array then stands for, a number, or
    a tuple of these; None means any address.  `callbacks` has the functions that C calls, which are
    valid during the call: {"function.parameter": "user"}, where "user" is the name of the `void*`
    that the function hands through, ("user", 2) with its position among the callback's parameters
    where it has several, or None.  `kept` are the functions that keep theirs for later: they return
    a handle, behind what else they return, and the callback lives as long as it.  `returns` are the
    results of functions, by name, as for `conventions.CFunction`.  `cc`, `include_paths` and
    `defines` are as for `module`.

    Functions that cannot be called are in `left_out`, with the reasons.  Raises CompileError for
    one of these that `functions` names, for a header that cannot be read, and for a library that
    cannot be loaded; ValueError for a name that the header does not have; OSError for a file that
    cannot be read; ImportError without pycparser.
    """
    from ferrule.frontends.cheaders import read_library

    return read_library(
        header,
        library,
        functions=functions,
        sizes=sizes,
        callbacks=callbacks,
        kept=kept,
        returns=returns,
        cc=cc,
        include_paths=include_paths,
        defines=defines,
    )


def _code(
    source: Source,
    cc: str | None,
    search: Sequence[str],
    flags: Sequence[str],
    libraries: Sequence[str],
    functions: Sequence[str],
) -> HostCode:
    from ferrule.compiler.hostcode import HostCode

    data = _object(source, cc, search, texts("flags", flags))
    try:
        return HostCode.from_object(data, libraries=libraries, functions=functions)
    except CompileError as error:
        known = error.diagnostic
        raise CompileError(replace(known, message=f"{source.name}: {known.message}")) from None


def _object(source: Source, cc: str | None, search: Sequence[str], flags: Sequence[str]) -> bytes:
    """The object file."""
    compiler = compiler_words(cc)
    with tempfile.TemporaryDirectory() as folder:
        file, target = Path(source.name), Path(folder) / "source.o"
        if source.folder is None:
            file = Path(folder) / f"{Path(source.name).stem}.c"
            file.write_bytes(source.data)
        known = [] if file.suffix in _ASSEMBLY else ["-x", source.language]
        command = [*compiler, *_ALWAYS, *flags, *search, *known, str(file), "-o", str(target)]
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", check=False
        )
        if done.returncode == 0 and target.exists():
            return target.read_bytes()
    said = (done.stderr + done.stdout).strip().replace(f"{folder}/", "")
    shown = "\n".join(map(_cut, said.splitlines()))
    message = f"{source.name} cannot be compiled by {shlex.join(compiler)}:\n{shown}"
    hint = hint_for_headers(said) or _hint_for_clang(source, compiler)
    raise CompileError(Diagnostic(message, hint=hint))


def _cut(line: str) -> str:
    """A line of a compiler's messages; generated sources have lines of thousands of letters."""
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]} …"


def _hint_for_clang(source: Source, compiler: Sequence[str]) -> str | None:
    """The hint for extensions of C that clang alone has."""
    used = next((each for each in _OF_CLANG if each in source.data), None)
    if used is None or "clang" in compiler[0]:
        return None
    return f"{used.decode()} is an extension of clang: cc='clang', or CC=clang in the environment"
