"""Calls of compiled functions: their code becomes a part of the program's.

Facts that the types of the arguments prove need no check: if everything is proved, the body is
called directly, like the language's own functions.  Otherwise the call goes through the function's
wrapper, with packed arguments, and may be refused like any other call.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ferrule.compiler.artefacts import HostModule, Part
from ferrule.language.ir import ops
from ferrule.language.ir.types import HandleType, result_types
from ferrule.language.lowering import owners
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.numbers.sizes import name_symbol
from ferrule.language.lowering.objects import call_results, foreign_calls
from ferrule.language.lowering.objects.proofs import Proof, Unproved
from ferrule.language.values import TensorView
from ferrule.runtime import Function
from ferrule.runtime.abi import SYMBOL_PREFIX
from ferrule.runtime.calls.callpath import ways_of
from ferrule.runtime.calls.plan import origin_of
from ferrule.runtime.linking.links import Link
from ferrule.specs import REQUIRED, Dim, Int32, Int64, Signature, Sym, params
from ferrule.specs.copies import changed, substitute, substituted
from ferrule.specs.deferred import dataclass
from ferrule.specs.expr import sym_int64


def call_compiled(
    low: Lowering, function: Function, args: list[Any], kwargs: dict[str, Any], node: ast.Call
) -> Any:
    """`f(a, b)` of a compiled function `f`."""
    foreign_calls.require_host(low, node)
    origin: Any = origin_of(function)
    module = getattr(origin, "module", None)
    if type(module) is not HostModule or not isinstance(module.signature, Signature):
        return _call_extern(low, function, args, kwargs, node)
    signature = module.signature
    given = _bound(low, signature, args, kwargs, node)
    low.require_inside(tuple(given.values()), node)
    _require_target(low, module, node)
    callee = _linked(module, origin)
    try:
        return _call_body(low, module, callee, given, node)
    except Unproved:
        return _call_wrapper(low, signature, callee, given, node)


def _call_extern(
    low: Lowering, function: Function, args: list[Any], kwargs: dict[str, Any], node: ast.Call
) -> Any:
    """A loaded function, for which there is only machine code."""
    signature = function.signature
    if not isinstance(signature, Signature):
        low.fail(node, f"{signature.name} is an overload; call one of its candidates")
    extern = ops.Extern(Link(SYMBOL_PREFIX + signature.name), signature.name, function)
    given = list(_bound(low, signature, args, kwargs, node).values())
    return _packed(low, extern, signature, given, node)


def _call_wrapper(
    low: Lowering,
    signature: Signature,
    callee: ops.Linked,
    given: Mapping[str, Any],
    node: ast.Call,
) -> Any:
    return _packed(low, callee, signature, list(given.values()), node)


def _packed(
    low: Lowering,
    callee: ops.Extern | ops.Linked,
    signature: Signature,
    given: list[Any],
    node: ast.Call,
) -> Any:
    """A call through the packed ABI, with the result according to the signature."""
    if signature.result is None or isinstance(signature.result, params.Scalar):
        dtype = None if signature.result is None else signature.result.dtype
        return foreign_calls.emit_wanted(low, callee, given, dtype, node)
    value = foreign_calls.emit_packed(low, callee, given, "any", node)
    fresh = {symbol: _like(symbol) for symbol in signature.names}
    result = call_results.placed(low, substituted(signature.result, fresh))
    return call_results.received(low, value, changed(result, name="result"), signature.name, node)


def _like(symbol: Sym) -> Sym:
    return sym_int64(symbol.divisibility, min=symbol.min, max=symbol.max)


def _bound(
    low: Lowering, signature: Signature, args: list[Any], kwargs: dict[str, Any], node: ast.Call
) -> dict[str, Any]:
    """The arguments by parameter, defaults filled in."""
    kinds = ways_of(signature)
    named = zip(signature.arguments, kinds, strict=True)
    wanted = [inspect.Parameter(param.name, kind) for param, kind in named]
    defaults = {p.name: p.default for p in signature.arguments if p.default is not REQUIRED}
    try:
        bound = inspect.Signature(wanted).bind_partial(*args, **kwargs).arguments
    except TypeError as error:
        low.fail(node, f"{signature.name}(): {error}", expected=str(signature))
    found = {**defaults, **bound}
    missing = [param.name for param in signature.arguments if param.name not in found]
    if missing:
        low.fail(
            node,
            f"{signature.name}(): missing the argument{'s' * (len(missing) > 1)} "
            + ", ".join(map(repr, missing)),
            expected=str(signature),
        )
    given = {param.name: found[param.name] for param in signature.arguments}
    _require_kept(low, signature, given, node)
    return given


def _require_kept(
    low: Lowering, signature: Signature, given: Mapping[str, Any], node: ast.Call
) -> None:
    """Requires an object for each tensor that the function may give back: what comes back would
    otherwise outlive its memory."""
    if not isinstance(signature.result, params.Tensor | params.Tuple):
        return
    for param in signature.arguments:
        if not (isinstance(param, params.Tensor) and param.owning):
            continue
        value = given[param.name]
        if isinstance(value, TensorView) and not owners.hold(low.state, value.value):
            low.fail(
                node,
                f"{signature.name} may give its argument {param.name} back, but "
                f"{low.location(node).function} has only borrowed this tensor",
                expected="a whole parameter, or a tensor that this function has made or a call "
                "returned",
                hint="call it in Python, or give a copy: t = fe.empty_like(a); t[:] = a[:]",
            )


def _require_target(low: Lowering, module: HostModule, node: ast.Call) -> None:
    """Requires the tensors and kernels of the function to be on the program's target."""
    signature, target = module.signature, low.state.target
    tensors = (param for param in signature.params if isinstance(param, params.Tensor))
    devices = [param.device for param in tensors if param.device is not None]
    if module.body.device_code is not None:
        devices.append("cuda")
    other = next((device for device in devices if device != target), None)
    if other is not None:
        low.fail(
            node,
            f"{signature.name} was compiled for {other}, but this function is compiled for "
            f"{target}",
            hint="compile both for one target",
        )


def _linked(module: HostModule, origin: Any) -> ops.Linked:
    body, signature = module.body, module.signature
    wrapper = Part("", SYMBOL_PREFIX + signature.name, module.wrapper, (body.part,))
    return ops.Linked(
        signature.name,
        body.part,
        wrapper,
        body.faults,
        signature.result,
        body.takes_device or body.device_code is not None,
        body.keeps,
        origin.traits,
        body.links,
        sources=tuple(origin.sources.items()),
        code=body.device_code,
    )


def _call_body(
    low: Lowering,
    module: HostModule,
    callee: ops.Linked,
    given: Mapping[str, Any],
    node: ast.Call,
) -> Any:
    """The call of the body.  Raises Unproved if a check is left."""
    signature, body = module.signature, module.body
    proof = _proof(low, module, given, node)
    made = _made(signature, proof.dims)
    leaves = [leaf for param in signature.params for leaf in proof.leaves(param, given[param.name])]
    for symbol in body.symbols:
        dtype = Int32 if symbol.width == 32 else Int64
        leaves.append(low.builder.size(dtype, proof.dims[symbol]))
    for symbol, each in made.items():
        name_symbol(low, each.symbol, signature.names[symbol])
    result = ops.Value(HandleType("results"), "results")
    callee = replace(callee, written=frozenset(proof.written))
    sizes = tuple((each.symbol, each.slot, each.axis) for each in made.values())
    low.builder.append(ops.CallBody(result, callee, tuple(leaves), sizes, low.location(node)))
    low.state.writes += 1
    if signature.result is None:
        return None
    for each in made.values():
        low.state.made[low.builder.size(Int64, each.symbol)] = each.symbol
    known = {**proof.dims, **{symbol: each.symbol for symbol, each in made.items()}}
    parts = call_results.Parts(low, {}, [], result)
    spec = substituted(signature.result, known)
    return parts.receive(spec, (0,), f"the result of {signature.name}")


def _proof(low: Lowering, module: HostModule, given: Mapping[str, Any], node: ast.Call) -> Proof:
    """The sizes of a call, with all relations between them proved."""
    signature = module.signature
    if len(signature.arguments) < len(signature.params):
        raise Unproved  # the wrapper gets the caller's stream
    if signature.requires:
        raise Unproved
    proof = Proof(low, signature, node)
    for param in signature.params:
        proof.bind(param, given[param.name])
    if not all(symbol in proof.dims for symbol in signature.symbols):
        raise Unproved
    for relation in module.body.relations:
        left, right = (substitute(dim, proof.dims) for dim in (relation.left, relation.right))
        if left != right:
            raise Unproved
    return proof


@dataclass(frozen=True, slots=True)
class _Size:
    """A symbol that only the result has: its replacement here, and the slot and dim of the tensor
    whose size it is."""

    symbol: Sym
    slot: int
    axis: int


def _made(signature: Signature, dims: Mapping[Sym, Dim]) -> dict[Sym, _Size]:
    """The symbols that only the result has.

    Raises Unproved if one is not a size of a tensor.
    """
    found = dict(_sizes(signature.result, 0))
    wanted = [symbol for symbol in signature.names if symbol not in dims]
    if not all(symbol in found for symbol in wanted):
        raise Unproved
    # Nothing checks the results of a body, so the bounds of its symbols are not relied on.
    return {symbol: _Size(sym_int64(symbol.divisibility), *found[symbol]) for symbol in wanted}


def _sizes(result: params.Param | None, slot: int) -> list[tuple[Sym, tuple[int, int]]]:
    """The positions of a result's symbols that are sizes of a tensor."""
    match result:
        case params.Tensor(shape=shape):
            return [(dim, (slot, axis)) for axis, dim in enumerate(shape) if isinstance(dim, Sym)]
        case params.Tuple(items=items):
            found = []
            for item in items:
                found += _sizes(item, slot)
                slot += len(result_types(item))
            return found
    return []
