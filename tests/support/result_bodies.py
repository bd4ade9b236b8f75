"""Functions that return what a test says: wrappers around a body that leaves these leaves."""

from __future__ import annotations

from collections.abc import Sequence

import tvm_ffi

from ferrule.compiler import targets
from ferrule.compiler.artefacts import Body, Fault
from ferrule.compiler.origin import CompiledOrigin, host_module
from ferrule.compiler.wrapper.leaves import leaves_of
from ferrule.compiler.wrapper.results import result_leaves
from ferrule.runtime import Engine, Function, make_function
from ferrule.specs import Param, Scalar, Signature


def origin(
    result: Param,
    leaves: Sequence[str],
    *,
    text: bytes = b"",
    params: Sequence[Param] = (),
    status: int = 0,
    faults: Sequence[Fault] = (),
) -> CompiledOrigin:
    """`f` returns this; each leaf is an operand of LLVM's, `@t` the address of the text.

    With parameters a leaf can be `%p0`, the first leaf of all of them.
    """
    kinds = result_leaves(result)
    given = [leaf for param in params for leaf in leaves_of(param)]
    lines = []
    for i, (kind, leaf) in enumerate(zip(kinds, leaves, strict=True)):
        lines.append(f"  %s{i} = getelementptr i64, ptr %results, i64 {i}")
        lines.append(f"  store {kind} {leaf}, ptr %s{i}")
    escaped = "".join(f"\\{byte:02X}" for byte in text)
    constant = f'@t = private constant [{len(text)} x i8] c"{escaped}"\n'
    arguments = "".join(f", {kind} %p{i}" for i, kind in enumerate(given))
    head = f"define i32 @ferrule_body(ptr %values, ptr %results{arguments}) {{\n"
    body = constant + head + "\n".join([*lines, f"  ret i32 {status}", "}\n"])
    signature = Signature("f", tuple(params), result)
    return CompiledOrigin(host_module(signature, Body(body, "ferrule_body", (), tuple(faults))), "")


def plain(result: Param, *leaves: str, text: bytes = b"") -> tvm_ffi.Function:
    """The function as tvm-ffi has it."""
    engine = _engine(origin(result, leaves, text=text))
    address = engine.address("__tvm_ffi_f")
    return tvm_ffi.Function.__from_extern_c__(address, keep_alive_object=engine)


def function(result: Param, *leaves: str, text: bytes = b"") -> Function:
    """The function as ferrule has it."""
    made = origin(result, leaves, text=text)
    engine = _engine(made)
    signature = made.module.signature
    return make_function(engine.address("__tvm_ffi_f"), signature, made, owner=engine)


def _engine(made: CompiledOrigin) -> Engine:
    here = targets.host()
    return Engine.load(made.emit("f", here.cpu, here.triple))


def scalar(dtype: str, name: str = "0") -> Scalar:
    """An item of a result."""
    return Scalar(name, dtype)
