"""The checked wrapper of a function as text, for a compiler that puts it into its own module.

    text = compiler.emit_wrapper(sig, conventions.CFunction("kernel", [...],
                                 code=HostCode.undefined()))

The text is complete: wrapper, support code, metadata.  It defines `__tvm_ffi_<name>` and the
functions that describe it; all other symbols are internal, with names that begin with the
function's name.  It needs only the callee, libtvm_ffi's C API and libc.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from ferrule.compiler.building import compiled
from ferrule.compiler.conventions.protocol import CallingConvention
from ferrule.compiler.options import Options
from ferrule.specs import Signature, Tensor

Form = Literal["llvm", "mlir"]


def emit_wrapper(
    signature: Signature,
    convention: CallingConvention,
    *,
    form: Form = "llvm",
    results: Sequence[Tensor] = (),
    options: str | Options | None = None,
    doc: str | None = None,
    zero: bool | str | Sequence[str] = (),
) -> str:
    """The wrapper of a signature, which makes the call that the convention describes, as text.

    `form`: "llvm" for LLVM IR, with the triple and data layout of the export target; "mlir" for a
    module of MLIR's `llvm` dialect.  A callee with `HostCode.undefined()` is an undefined symbol in
    the text; your module must define it.  The other parameters are as for `build`.

    Raises ValueError for another form, and the errors of `build`.
    """
    if form not in ("llvm", "mlir"):
        raise ValueError(f"emit_wrapper: form is {form!r}, expected 'llvm' or 'mlir'")
    origin = compiled(signature, convention, results=results, options=options, doc=doc, zero=zero)
    text = origin.wrapper_text()
    if form == "llvm":
        return text
    from ferrule.compiler.mlir.dialect import to_dialect

    return to_dialect(text)
