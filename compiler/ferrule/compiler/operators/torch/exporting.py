"""Operators in files: an object that registers an operator when its library is loaded.

`torch.ops.load_library` or a C++ program loads the library; no Python of ours is there. The object
has the boxed kernel and a constructor that registers it with the schema. A fake kernel and
gradients are Python, so a process that traces the operator registers them with torch's functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from llvmlite import binding, ir

from ferrule import specs
from ferrule.compiler import targets
from ferrule.compiler.operators.torch import refusing
from ferrule.compiler.operators.torch.allocation import PROBE, checked
from ferrule.compiler.operators.torch.boxed import KERNEL, emit_boxed, throw, why_not_boxed
from ferrule.compiler.operators.torch.plans import Plan, keys_of, plan_of
from ferrule.compiler.operators.torch.schema import schema_of
from ferrule.compiler.operators.torch.symbols import KEYS, library_paths, load_torch
from ferrule.runtime.abi import SYMBOL_PREFIX
from ferrule.runtime.artefacts import OperatorCode
from ferrule.runtime.linking.linker import find_runtime_libraries
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import I32, PTR, VOID

_CONSTRUCTOR: Final = "ferrule_register"
_INIT: Final = ir.FunctionType(I32, [PTR, PTR, I32, PTR])
_INIT_IMPL: Final = ir.FunctionType(I32, [PTR, PTR, PTR, I32, PTR])
_DEFINE: Final = ir.FunctionType(I32, [PTR, PTR])
_IMPLEMENT: Final = ir.FunctionType(I32, [PTR, PTR, PTR])


def operator_code(
    signature: specs.Signature,
    function_name: str,
    operator: str,
    out: Sequence[str],
    target: targets.HostTarget,
) -> OperatorCode:
    """The code that registers `operator`, and torch's and tvm-ffi's libraries.

    Raises the errors of `operator_object`, and ImportError without torch.
    """
    load_torch("export_library(torch_op=)")
    data = operator_object(signature, function_name, operator, out, target)
    return OperatorCode(data, (*library_paths(), *find_runtime_libraries()))


def operator_object(
    signature: specs.Signature,
    function_name: str,
    operator: str,
    out: Sequence[str],
    target: targets.HostTarget,
) -> bytes:
    """The object that registers `operator` for the exported function of this name.

    Raises the errors of `torch_op`, and ValueError for an operator whose kernel is Python.
    """
    plan = checked(plan_of(operator, signature, tuple(out)))
    why = why_not_boxed(plan)
    if why is not None:
        raise ValueError(
            f"torch_op {operator!r}: {why}, for which an operator's kernel is Python, so that no "
            f"library can hold it; register it in Python: fe.torch_op"
        )
    e = Emitter("ferrule.torch_op", target.triple)
    probes = emit_boxed(e, plan, SYMBOL_PREFIX + function_name)
    _define_constructor(e, plan, probes=probes)
    module = binding.parse_assembly(e.text(), context=binding.create_context())
    module.verify()
    return bytes(targets.machine(target).emit_object(module))


def _define_constructor(e: Emitter, plan: Plan, *, probes: bool) -> None:
    """Registers the operator.

    One that torch does not take is an exception of C++, as with `TORCH_LIBRARY`: it ends a process
    that does not catch it, and a call never reaches the operator of another library unnoticed.
    """
    e.module.globals[KERNEL].linkage = "internal"
    with e.define(_CONSTRUCTOR, VOID, [], linkage="internal", attributes=("uwtable",)) as function:
        if probes:
            e.module.globals[PROBE].linkage = "internal"
            e.call(e.module.globals[PROBE], [])
        place = e.alloca(PTR, name="library")
        space, file = e.cstring(plan.namespace), e.cstring("ferrule")
        init = e.symbol("aoti_torch_library_init_fragment", _INIT)
        _go_on(e, e.call(init, [space, file, e.const_i32(0), place]))
        define = e.symbol("aoti_torch_library_def", _DEFINE)
        refused = e.call(define, [e.load(place, PTR), e.cstring(schema_of(plan))])
        with e.if_then(e.icmp("ne", refused, e.const_i32(0)), likely=False):
            throw(e, e.cstring(_taken(plan)))
            e.ret()
        for device in keys_of(plan):
            _implement(e, plan, KEYS[device], e.module.globals[KERNEL])
        if not plan.mutates and refusing.is_possible(e.module.triple):
            _refuse_gradients(e, plan)
        e.ret()
    _list_constructor(e, function)


def _taken(plan: Plan) -> str:
    return (
        f"{plan.name}: torch does not take this operator of a library that is loaded; another "
        f"library, or a copy of this one, has registered an operator with the name already"
    )


def _go_on(e: Emitter, code: ir.Value) -> None:
    with e.if_then(e.icmp("ne", code, e.const_i32(0)), likely=False):
        e.ret()


def _library_of(e: Emitter, plan: Plan, key: str) -> ir.Value:
    place = e.alloca(PTR, name="implementations")
    init = e.symbol("aoti_torch_library_init_impl", _INIT_IMPL)
    texts = [e.cstring(each) for each in (plan.namespace, key, "ferrule")]
    _go_on(e, e.call(init, [*texts, e.const_i32(0), place]))
    return e.load(place, PTR)


def _implement(e: Emitter, plan: Plan, key: str, kernel: ir.Function) -> None:
    library = _library_of(e, plan, key)
    implement = e.symbol("aoti_torch_library_impl", _IMPLEMENT)
    _go_on(e, e.call(implement, [library, e.cstring(plan.short), kernel]))


def _refuse_gradients(e: Emitter, plan: Plan) -> None:
    """torch's kernel for operations without a derivative, if this torch has it."""
    names = (refusing.FALLBACK, refusing.IMPL, refusing.DESTROY)
    functions = [refusing.declared(e, name) for name in names]
    missing = [e.is_null(ir.FormattedConstant(PTR, f.get_reference())) for f in functions]
    for flag in missing:
        with e.if_then(flag, likely=False):
            e.ret()
    library = _library_of(e, plan, "Autograd")
    refusing.emit_refusal(e, functions, library, e.cstring(plan.short))


def _list_constructor(e: Emitter, function: ir.Function) -> None:
    """Make the loader run the function when the library has been loaded."""
    entry = ir.LiteralStructType([I32, PTR, PTR])
    address = ir.FormattedConstant(PTR, function.get_reference())
    values = [ir.Constant(I32, 65535), address, ir.Constant(PTR, None)]
    listed = ir.Constant(ir.ArrayType(entry, 1), [ir.Constant(entry, values)])
    variable = ir.GlobalVariable(e.module, listed.type, "llvm.global_ctors")
    variable.linkage = "appending"
    variable.initializer = listed
