"""The run-time needs of a program, derived from its ops, for calls from Python."""

from __future__ import annotations

from ferrule.compiler.options import GilPolicy
from ferrule.language.ir import ops
from ferrule.runtime.entry.key import CallTraits
from ferrule.specs import Signature
from ferrule.specs.params import EnvStream


def traits_of(
    program: ops.Program, signature: Signature, *, on_gpu: bool, release_gil: GilPolicy = "auto"
) -> CallTraits:
    """The traits of a program; `on_gpu`: its kernels are launched with the CUDA driver.

    Straight-line code keeps the GIL unless `release_gil` says otherwise: loops, launches, new
    tensors, calls and output release it.
    """
    host = program.host.facts
    long = any("blocks" in op.effects for op in host.ops)
    calls = host.has(ops.Call)
    called = [call.callee.traits for call in host.each(ops.CallBody)]
    long = long or any(each.releases_gil for each in called)
    asks = any(isinstance(param, EnvStream) for param in signature.params)
    return CallTraits(
        releases_gil=long if release_gil == "auto" else release_gil,
        uses_stream=on_gpu or asks or calls or any(each.uses_stream for each in called),
        allocates=calls or host.has(ops.Alloc) or any(each.allocates for each in called),
    )
