"""Checks of the arguments of `build`: options without an effect, and results that do not fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Final

from ferrule.compiler.conventions.arguments import listed, shown
from ferrule.compiler.conventions.give import Given
from ferrule.compiler.conventions.protocol import CallingConvention, check_convention
from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.compiler.options import Options
from ferrule.specs import NoneValue, Signature, Tensor, symbols_of

_MEANINGFUL: Final = frozenset(
    {
        *("target", "enable_tvm_ffi", "opt_level", "strip_paths", "release_gil"),
        *("host_cpu", "host_target", "keep_ptx", "keep_cubin", "dump_dir", "cache"),
    }
)
"""Options for the compilation of kernels, which have no effect on code that is compiled already."""


def check_options(name: str, options: Options, target: str) -> None:
    """CompileError for an option without an effect on this function."""
    ignored = [
        f"--{each.name.replace('_', '-')}"
        for each in fields(Options)
        if each.name not in _MEANINGFUL and getattr(options, each.name) != each.default
    ]
    if ignored:
        raise CompileError(
            Diagnostic(
                f"{name}: {', '.join(ignored)} says how ferrule compiles kernels, but the code "
                f"here is compiled already",
                hint="say it to what compiles the kernel, and leave it out here",
            )
        )
    if options.target not in (None, target):
        why = "launches kernels for a GPU" if target == "cuda" else "launches no kernel for a GPU"
        raise CompileError(f"{name}: --target is {options.target}, but this function {why}")


def check_request(
    signature: Signature,
    convention: CallingConvention,
    results: Sequence[Tensor | NoneValue | Given],
) -> None:
    """Raise TypeError or ValueError for arguments that `build` cannot accept, see there."""
    if not isinstance(signature, Signature):
        raise TypeError(
            f"build: expected a specs.Signature first, but got {type(signature).__name__}"
        )
    check_convention(convention, f"{signature.name}: what it calls")
    if convention.when is not None and convention.results():
        raise ValueError(
            f"{signature.name}: a call that depends on a condition can give nothing back: write to "
            f"a tensor of `results` instead"
        )
    listed(results, f"{signature.name}: results")
    if signature.result is not None:
        raise ValueError(
            f"{signature.name}: a signature has no result of its own here: say `results=[…]`"
        )
    places = sum(isinstance(each, Given) for each in results)
    if places > len(convention.results()):
        raise ValueError(
            f"{signature.name}: {places} places of results=[…] are GIVEN, but the convention gives "
            f"{len(convention.results())} results"
        )
    taken = {param.name: "a parameter" for param in signature.params}
    for position, tensor in enumerate(results):
        if isinstance(tensor, Given):
            continue
        if not isinstance(tensor, Tensor | NoneValue):
            raise TypeError(
                f"{signature.name}: a result is a Tensor, but got {shown(tensor)}: its spec goes "
                "into results=[…] and out of the signature"
            )
        if any(tensor is each for each in (*signature.params, *results[:position])):
            raise ValueError(
                f"{signature.name}: {shown(tensor)} is a result and a parameter or another result: "
                f"a call allocates each result, so it is in `results` alone, once"
            )
        if tensor.name in taken:
            raise ValueError(
                f"{signature.name}: the result {tensor.name!r} is called as {taken[tensor.name]} "
                f"is: give it a name of its own"
            )
        taken[tensor.name] = "another result"
        if isinstance(tensor, Tensor):
            _check_sizes(signature, tensor)


def checked_zero(
    name: str, results: Sequence[Tensor], zero: bool | str | Sequence[str]
) -> tuple[Tensor, ...]:
    """The results to fill with zeros: the named ones, or all of them for True.

    Raises TypeError for values that are not names, ValueError for a name that no result has, and
    for True without results.
    """
    if isinstance(zero, bool):
        if zero and not results:
            raise ValueError(f"{name}: zero=True fills results, and there is none: say results=[…]")
        return tuple(results) if zero else ()
    wanted = (zero,) if isinstance(zero, str) else listed(zero, f"{name}: zero")
    known = {each.name: each for each in results}
    for each in wanted:
        if not isinstance(each, str):
            raise TypeError(
                f"{name}: zero is True or names of results, such as ['out'], but got {shown(each)}"
            )
        if each not in known:
            there = ", ".join(known) or "there is none"
            raise ValueError(f"{name}: zero names {each!r}, expected a result: {there}")
    return tuple(known[each] for each in dict.fromkeys(wanted))


def _check_sizes(signature: Signature, result: Tensor) -> None:
    """ValueError unless the arguments of a call determine all sizes of a result."""
    told = () if result.capacity is None else (result.shape[0],)
    if told and told[0] in signature.symbols:
        raise ValueError(
            f"{signature.name}: the result {result.name!r} has a capacity, but the arguments tell "
            f"its size {signature.format(told[0])}: leave the capacity out, or name another symbol"
        )
    values = frozenset(signature.known) - frozenset(signature.symbols)  # of integer parameters
    capacity = 0 if result.capacity is None else result.capacity
    of_shape = [(dim, frozenset(told)) for dim in (*result.shape, *result.strides)]
    for dim, known in (*of_shape, (capacity, values)):
        for symbol in symbols_of(dim):
            if symbol not in signature.symbols and symbol not in known:
                if symbol.name in {each.name for each in signature.params}:
                    raise ValueError(
                        f"{signature.name}: a size of the result {result.name!r} is made of the "
                        f"value of {symbol.name}, and sizes are bound by tensors and shapes alone: "
                        f"hand it over in a specs.Shape('shape', (n,)) with n = "
                        f"specs.sym_int64(symbol='n'), hand over {result.name!r} as a parameter, "
                        f"or, where a call tells the size, say capacity={symbol.name}.value"
                    )
                which = symbol if symbol.name else "without a name"
                raise ValueError(
                    f"{signature.name}: the size {which} of the result {result.name!r} is in "
                    f"no parameter of {signature}, so a call does not tell it"
                )
