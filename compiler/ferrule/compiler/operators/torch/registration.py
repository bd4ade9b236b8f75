"""Operators in torch's registry: schema, kernels, and what keeps their code alive.

What is registered stays until the process ends, or until `replace`. Graphs and handles of a
replaced operator stay valid: its code is kept, its entry in torch's dispatcher goes on with the new
definition, and its backward operator is not touched.
"""

from __future__ import annotations

import ctypes
import importlib
import sys
from collections.abc import Callable
from typing import Any, Final

from ferrule.compiler.operators.torch.allocation import PROBE, SET_ALLOCATOR
from ferrule.compiler.operators.torch.boxed import KERNEL, boxed_module, why_not_boxed
from ferrule.compiler.operators.torch.fake import traced_writes
from ferrule.compiler.operators.torch.plans import Plan, keys_of
from ferrule.compiler.operators.torch.pythonic import python_kernel
from ferrule.compiler.operators.torch.refusing import REFUSE, refusing_code
from ferrule.compiler.operators.torch.schema import schema_of
from ferrule.compiler.operators.torch.symbols import KEYS, addresses, libraries
from ferrule.runtime import Function
from ferrule.runtime.abi import SYMBOL_PREFIX
from ferrule.runtime.linking.engine import Engine, host_triple, libtvm_ffi
from ferrule.runtime.llvm.native import compile_native
from ferrule.specs.deferred import dataclass

_TARGET: Final = "ferrule_target"
_CODE: Final = KERNEL.removeprefix(SYMBOL_PREFIX)


@dataclass(slots=True, eq=False)
class Registered:
    """An operator in torch's registry; its code lives as long as this object."""

    name: str
    library: Any
    held: list[object]

    def remove(self) -> None:
        """Take the operator out of the registry; remaining references to it reach the next one."""
        _anchor(self.name)
        for each in self.held:
            if isinstance(each, _Handle):
                each.remove()
        self.library._destroy()
        _RETIRED.extend(self.held)


_REGISTERED: Final[dict[str, Registered]] = {}

_RETIRED: Final[list[object]] = []
"""The code of operators that were replaced: a thread may be in it, or a graph call it."""

_ANCHORS: Final[dict[str, Any]] = {}
"""Libraries that hold torch's entries of operators which were replaced.

torch frees an entry with its last kernel, although handles and graphs still point to it.
"""

_UNUSED_KEY: Final = "PrivateUse3"


def _anchor(name: str) -> None:
    if name not in _ANCHORS:
        torch = sys.modules["torch"]
        namespace, _, short = name.partition("::")
        library = _ANCHORS[name] = torch.library.Library(namespace, "IMPL")
        library.impl(short, torch.library.fallthrough_kernel, _UNUSED_KEY)


@dataclass(frozen=True, slots=True)
class Kernel:
    """The code of an operator for its devices: a boxed kernel at `address`, or `python`."""

    address: int | None
    python: Callable[..., Any] | None
    owners: tuple[object, ...]


def kernel_of(plan: Plan, function: Function) -> Kernel:
    """The boxed kernel; a Python one where the signature or this torch has no boxed one."""
    boxed = None if why_not_boxed(plan) is not None else _boxed(plan, function)
    return boxed or Kernel(None, python_kernel(plan, function), (function,))


def _boxed(plan: Plan, function: Function) -> Kernel | None:
    module = boxed_module(plan, _TARGET, host_triple())
    symbols = addresses(module.needed)
    if symbols is None:
        return None
    ours = {_TARGET: function.call_plan.code, SET_ALLOCATOR: _allocator_setter()}
    engine = Engine.load(compile_native(_CODE, module.text), {**symbols, **ours})
    if module.probes:
        ctypes.CFUNCTYPE(None)(engine.address(PROBE))()
    return Kernel(engine.address(KERNEL), None, (engine, function))


def _allocator_setter() -> int:
    found = libtvm_ffi().TVMFFIEnvSetDLPackManagedTensorAllocator
    return ctypes.cast(found, ctypes.c_void_p).value or 0


def check_new(name: str, *, replace: bool) -> None:
    """ValueError if there is an operator with this name, which `replace` does not cover."""
    if name in _REGISTERED and replace:
        return
    if is_taken(name):
        why = "pass replace=True to replace it" if name in _REGISTERED else "choose another name"
        raise ValueError(f"torch_op: there is an operator {name!r}; {why}")


def is_taken(name: str) -> bool:
    """Whether torch has an operator with this name."""
    has_entry = bool(sys.modules["torch"]._C._dispatch_has_kernel(name))
    return (has_entry and name not in _ANCHORS) or _has_schema(name)


def _has_schema(name: str) -> bool:
    return bool(sys.modules["torch"]._C._jit_get_schemas_for_operator(name))


@dataclass(slots=True, eq=False)
class _Handle:
    """A library of torch's C interface, in which kernels of one dispatch key are registered."""

    pointer: ctypes.c_void_p

    def remove(self) -> None:
        _torch_library().aoti_torch_delete_library_object(self.pointer)


def register(plan: Plan, kernel: Kernel, fake: Callable[..., Any], schema: str) -> Registered:
    """Register schema, kernels and the fake kernel, all or nothing.

    An operator of this name that is registered here is taken out first.
    """
    if plan.name in _REGISTERED:
        _REGISTERED.pop(plan.name).remove()
        if (dynamo := sys.modules.get("torch._dynamo")) is not None:
            dynamo.reset()  # compiled graphs have the sizes and strides of the former operator
    torch = sys.modules["torch"]
    library = torch.library.Library(plan.namespace, "FRAGMENT")
    made = Registered(plan.name, library, [*kernel.owners])
    try:
        _define(plan, library, schema)
        for device in keys_of(plan):
            _register_kernel(made, plan, kernel, KEYS[device])
        torch.library.register_fake(plan.name, fake, lib=library)
        if plan.mutates:
            # The kernel refuses gradients itself.
            library.impl(plan.short, torch.library.fallthrough_kernel, "Autograd")
            mode = importlib.import_module("torch._subclasses.functional_tensor")
            torch.library.register_torch_dispatch(
                plan.name, mode.FunctionalTensorMode, traced_writes(plan), lib=library
            )
    # After Ctrl-C too: half an operator would keep the name.
    except BaseException:
        made.remove()
        raise
    _REGISTERED[plan.name] = made
    return made


def _define(plan: Plan, library: Any, schema: str) -> None:
    try:
        library.define(schema, tags=(sys.modules["torch"].Tag.pt2_compliant_tag,))
    except RuntimeError as error:  # such as another thread that registered the name meanwhile
        raise ValueError(f"torch_op {plan.name!r}: torch does not take it: {error}") from None


def checked_schema(plan: Plan) -> str:
    """The schema.  ValueError for one that torch's parser does not take."""
    schema = schema_of(plan)
    try:
        sys.modules["torch"]._C.parse_schema(f"{plan.namespace}::{schema}")
    except RuntimeError as error:
        raise ValueError(
            f"torch_op {plan.name!r}: torch does not take the schema {schema!r}: {error}"
        ) from None
    return schema


def _register_kernel(made: Registered, plan: Plan, kernel: Kernel, key: str) -> None:
    if kernel.address is None:
        made.library.impl(plan.short, kernel.python, key)
    else:
        handle = _handle(plan.namespace, key)
        made.held.append(handle)
        _check(
            _torch_library().aoti_torch_library_impl(
                handle.pointer, plan.short.encode(), ctypes.c_void_p(kernel.address)
            )
        )


def _handle(namespace: str, key: str) -> _Handle:
    pointer = ctypes.c_void_p()
    _check(
        _torch_library().aoti_torch_library_init_impl(
            namespace.encode(), key.encode(), b"ferrule", 0, ctypes.byref(pointer)
        )
    )
    return _Handle(pointer)


def _check(code: int) -> None:
    if code != 0:
        raise RuntimeError("torch has not taken the operator: it printed why")


def _torch_library() -> Any:
    return libraries()[0]


def register_gradients(
    made: Registered,
    plan: Plan,
    backward: Callable[..., Any],
    setup_context: Callable[..., None] | None,
) -> None:
    """Register the function for the gradients of the inputs."""
    sys.modules["torch"].library.register_autograd(
        plan.name, backward, setup_context=setup_context, lib=made.library
    )


def refuse_gradients(made: Registered, plan: Plan) -> None:
    """Let torch say at a backward pass that the operator has no derivative, as for its own."""
    code = refusing_code()
    if code is None:
        register_gradients(made, plan, _refused(plan), None)
        return
    handle = _handle(plan.namespace, "Autograd")
    made.held += [handle, code]
    refuse = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p)(code.address(REFUSE))
    refuse(handle.pointer, plan.short.encode())


def _refused(plan: Plan) -> Callable[..., Any]:
    def backward(ctx: Any, *grads: Any) -> Any:
        raise RuntimeError(f"derivative for {plan.name} is not implemented")

    return backward
