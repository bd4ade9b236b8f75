"""Our LLVM IR through libNVVM, NVIDIA's compiler library, in place of LLVM's passes and back end.

libNVVM (of CUDA 13.0) reads LLVM IR with opaque pointers for architectures from sm_100 on alone.
It takes an intrinsic that it does not know for a function of the program, without an error: those
that LLVM has renamed get the older name here, and what is left is refused.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from ferrule.language.codegen.cuda import kernels

_LAYOUT: Final = (
    "e-p:64:64:64-p3:32:32:32-i1:8:8-i8:8:8-i16:16:16-i32:32:32-i64:64:64-i128:128:128-"
    "f32:32:32-f64:64:64-v16:16:16-v32:32:32-v64:64:64-v128:128:128-n16:32:64"
)
"""The data layout that libNVVM requires; pointers and elements lie as in LLVM's."""
_RENAMED: Final = (
    (r'@"llvm\.nvvm\.barrier\.cta\.sync\.aligned\.all"\(i32 0\)', '@"llvm.nvvm.barrier0"()'),
    (
        r'(declare void )@"llvm\.nvvm\.barrier\.cta\.sync\.aligned\.all"\(i32[^)]*\)',
        r'\1@"llvm.nvvm.barrier0"()',
    ),
)
_UNKNOWN: Final = re.compile(r"\.extern \.func .*?(llvm\.[\w.]+)")


class NotTaken(Exception):
    """What libNVVM says of a module that it refuses."""


@contextmanager
def recorded() -> Iterator[list[str]]:
    """The LLVM IR of kernels that are compiled inside, before LLVM's passes."""
    texts: list[str] = []
    made = kernels.ptx

    def ptx(text: str, *arguments: Any) -> str:
        texts.append(text)
        return made(text, *arguments)

    kernels.ptx = ptx
    try:
        yield texts
    finally:
        kernels.ptx = made


class Library:
    """libNVVM, from its file."""

    def __init__(self, path: str) -> None:
        self.functions = ctypes.CDLL(path)

    def ptx(self, text: str, arch: str) -> str:
        """The PTX of a module.  A NotTaken if it is refused."""
        program = ctypes.c_void_p()
        self._call("nvvmCreateProgram", ctypes.byref(program))
        try:
            return self._compiled(program, _adapted(text).encode(), arch)
        finally:
            self._call("nvvmDestroyProgram", ctypes.byref(program))

    def _compiled(self, program: ctypes.c_void_p, text: bytes, arch: str) -> str:
        size, name = ctypes.c_size_t(len(text)), b"kernels"
        self._call("nvvmAddModuleToProgram", program, text, size, name)
        options = (ctypes.c_char_p * 2)(
            f"-arch={arch.replace('sm_', 'compute_')}".encode(), b"-opt=3"
        )
        try:
            self._call("nvvmVerifyProgram", program, 2, options)
            self._call("nvvmCompileProgram", program, 2, options)
        except NotTaken:
            raise NotTaken(self._text("nvvmGetProgramLog", program)) from None
        ptx = self._text("nvvmGetCompiledResult", program)
        if unknown := _UNKNOWN.search(ptx):
            raise NotTaken(f"it does not know {unknown[1]}")
        return ptx

    def _text(self, function: str, program: ctypes.c_void_p) -> str:
        size = ctypes.c_size_t()
        self._call(f"{function}Size", program, ctypes.byref(size))
        content = ctypes.create_string_buffer(size.value)
        self._call(function, program, content)
        return content.value.decode()

    def _call(self, function: str, *arguments: Any) -> None:
        status = getattr(self.functions, function)(*arguments)
        if status:
            raise NotTaken(f"{function}: status {status}")


def _adapted(text: str) -> str:
    """A module with libNVVM's layout, names and version."""
    text = re.sub(r'target datalayout = "[^"]*"', f'target datalayout = "{_LAYOUT}"', text)
    for pattern, name in _RENAMED:
        text = re.sub(pattern, name, text)
    free = 1 + max(map(int, re.findall(r"^!(\d+) =", text, re.MULTILINE)), default=-1)
    return f"{text}\n!nvvmir.version = !{{!{free}}}\n!{free} = !{{i32 2, i32 0}}\n"
