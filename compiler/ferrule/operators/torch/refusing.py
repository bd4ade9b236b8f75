"""torch's own kernel for operations without a derivative, registered for an operator.

It is a function of C++ alone: `autogradNotImplementedFallback` gives a kernel, `Library::_impl`
takes it. The objects that go between them are torch's; a few lines of LLVM IR hand them on. With
it a backward pass through the operator is torch's error, and a call pays for no Python.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from ferrule.operators.torch.symbols import addresses
from ferrule.runtime.linking.engine import Engine, host_triple
from ferrule.runtime.llvm.native import compile_native

_FALLBACK: Final = "_ZN5torch8autograd30autogradNotImplementedFallbackEv"
_IMPL: Final = "_ZNR5torch7Library5_implEPKcONS_11CppFunctionENS_17_RegisterOrVerifyE"
_DESTROY: Final = "_ZN5torch11CppFunctionD1Ev"
_NAME: Final = "refuse_gradients"
_ROOM: Final = 4096
"""More than torch's CppFunction takes, in bytes."""

REFUSE: Final = f"__tvm_ffi_{_NAME}"
"""`void refuse(torch::Library* library, const char* name)`."""

_TEXT: Final = """\
target triple = "{triple}"

declare void @{fallback}(ptr sret([{room} x i8]) align 16)
declare ptr @{impl}(ptr, ptr, ptr, i32)
declare void @{destroy}(ptr)

define void @{refuse}(ptr %library, ptr %name) uwtable {{
  %kernel = alloca [{room} x i8], align 16
  call void @{fallback}(ptr sret([{room} x i8]) align 16 %kernel)
  %unused = call ptr @{impl}(ptr %library, ptr %name, ptr %kernel, i32 0)
  call void @{destroy}(ptr %kernel)
  ret void
}}
"""


@cache
def refusing_code() -> Engine | None:
    """The code of `REFUSE`; None if this torch does not have the functions."""
    found = addresses((_FALLBACK, _IMPL, _DESTROY))
    if found is None:
        return None
    text = _TEXT.format(
        triple=host_triple(),
        room=_ROOM,
        fallback=_FALLBACK,
        impl=_IMPL,
        destroy=_DESTROY,
        refuse=REFUSE,
    )
    return Engine.load(compile_native(_NAME, text), found)
