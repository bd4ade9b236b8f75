"""`Callback`: a C function pointer that calls a function of tvm-ffi.

It is valid during the call, with the error of the call (`thunks`), or as long as a handle that the
call gives back (`kept_thunks`).
"""

from __future__ import annotations

import collections.abc
from typing import Literal

from llvmlite import ir

from ferrule.compiler.artefacts import Fault, literal
from ferrule.compiler.conventions.arguments import listed, shown
from ferrule.compiler.conventions.base import Call
from ferrule.compiler.conventions.c.kept_thunks import open_group
from ferrule.compiler.conventions.c.texts import CString
from ferrule.compiler.conventions.c.thunks import FRAME, MOST_CALLS, Kind, Thunks, close, require
from ferrule.compiler.conventions.conversions import limits
from ferrule.runtime.llvm.layouts import I64, PTR
from ferrule.specs import DType, as_dtype
from ferrule.specs import params as kinds
from ferrule.specs.deferred import dataclass
from ferrule.specs.params.numbers import check_scalar_dtype

__all__ = ["MOST_CALLS", "Callback", "UserData"]


@dataclass(frozen=True, slots=True, init=False)
class Callback:
    """A C function pointer for a `Function` of the signature, valid during the call.

        compare = Callback(sig["compare"], ["pointer", "pointer"], returns="int32")
        CFunction("qsort", [x.data, cast(n, "uint64"), cast(4, "uint64"), compare])

    `params` are the C types of what it gets, without the context: dtypes, "pointer", and `CString`
    for a `const char*`, of which the function gets a copy, or None.  `returns` is a dtype,
    "pointer" or None.  `context` is the position, among all parameters of the callback in C, of the
    `void*` that the C function hands through; the C function gets `user_data` as that pointer, the
    same for all callbacks of a function that are not kept, and the same for all that are:
    libraries hand one to several.  A callback without a context can be used by `MOST_CALLS` calls
    at once, and the next is a RuntimeError.

    An `Optional` `Function` that is not given is a null pointer.

    The first error in a callback is the error of the call, after the C function has returned; from
    the error on every callback returns `on_error`, by default 0 or null, at once.  Other threads
    may call it until the call ends; nothing may afterwards.

    With `kept` it lives on: the call gives a handle back, behind what else it gives, an object of
    tvm-ffi that owns the callback.  When the handle is gone, the pointer returns `on_error`, in any
    thread, as long as nobody gets its thunk again.  A later error stays in the handle, and each
    callback returns `on_error` until the handle is called: `handle()` raises the error.

    Raises TypeError for anything but a `Function` and for other C types; ValueError for a context
    outside of the parameters, and for a value that does not fit.
    """

    function: kinds.Function | kinds.Optional
    params: tuple[Kind, ...]
    returns: DType | Literal["pointer"] | None
    context: int | None
    on_error: int | float
    handle: kinds.Function | None

    def __init__(
        self,
        function: kinds.Function | kinds.Optional,
        params: collections.abc.Sequence[DType | str | type[CString]],
        *,
        returns: DType | str | None = None,
        context: int | None = None,
        on_error: float = 0,
        kept: bool = False,
    ) -> None:
        put = object.__setattr__
        inner = function.item if isinstance(function, kinds.Optional) else function
        if not isinstance(inner, kinds.Function):
            raise TypeError(
                f"Callback: expected a Function of the signature, specs.Function('compare'), but "
                f"got {shown(function)}; an address of C goes as a Pointer"
            )
        put(self, "function", function)
        what = f"the callback {function.name}"
        put(
            self,
            "params",
            tuple(checked_kind(each, what) for each in listed(params, f"{what}: params")),
        )
        put(self, "returns", None if returns is None else checked_result(returns, what))
        put(self, "context", context)
        put(self, "on_error", on_error)
        if not isinstance(kept, bool):
            raise TypeError(f"{what}: kept must be True or False, but got {shown(kept)}")
        put(self, "handle", kinds.Function("handle") if kept else None)
        count = len(self.params)
        if context is not None and not (type(context) is int and 0 <= context <= count):
            raise ValueError(
                f"{what}: context is the position of the void* among its own {count + 1} "
                f"parameters in C, from 0 on, but got {context!r}; the C function gets .user_data"
            )
        self._check_on_error(what)

    def _check_on_error(self, what: str) -> None:
        value, returns = self.on_error, self.returns
        if not isinstance(value, int | float):
            raise TypeError(f"{what}: on_error must be a number, but got {shown(value)}")
        if not isinstance(returns, DType):
            if value != 0:
                kind = "nothing" if returns is None else "a pointer, null"
                raise ValueError(f"{what}: it returns {kind} after an error, not {value!r}")
            return
        if returns.kind == "float":
            return
        low, high = limits(returns)
        if not isinstance(value, int) or not low <= value <= high:
            raise ValueError(f"{what}: on_error={value!r} does not fit {returns.name}")

    @property
    def user_data(self) -> UserData:
        """The `void*` for the C function, which it hands through to the callback.

        Raises ValueError for a callback without `context`.
        """
        if self.context is None:
            raise ValueError(
                f"the callback {self.function.name} has no user_data: say which of its parameters "
                f"it is, context=0"
            )
        return UserData(self)

    @property
    def needs_end(self) -> bool:
        """Whether something is left at the end of the call: the thunk, and an error."""
        return True

    @property
    def name(self) -> str:
        """Its name in errors."""
        return f"the callback {self.function.name}"

    def types(self) -> list[ir.Type]:
        """See `HostArgument`."""
        return [PTR]

    def values(self, call: Call, what: str) -> list[ir.Value]:
        """See `HostArgument`."""
        return [self.open(call)[0]]

    def open(self, call: Call) -> tuple[ir.Value, ir.Value]:
        """The thunk for a call, and the context for it."""
        known = call.callbacks.get(id(self))
        if known is not None:
            return known[0], known[1]
        if self.handle is not None:
            self._open_kept(call)
        else:
            function = self._function(call)
            self._opened(call, *self._during_the_call(call, len(call.callbacks), function))
        thunk, user_data, _ = call.callbacks[id(self)]
        return thunk, user_data

    def _open_kept(self, call: Call) -> None:
        """Open all kept callbacks that have one context, since C may hand it to any of them."""
        known = () if call.frames is None or self.context is None else call.frames.kept
        group: list[Callback] = [each for each in known if isinstance(each, Callback)] or [self]
        made = open_group(call, [(each, each._function(call)) for each in group])
        for each, (thunk, user_data) in zip(group, made, strict=True):
            each._opened(call, thunk, user_data)

    def _function(self, call: Call) -> ir.Value:
        """The function of tvm-ffi, or null."""
        call.steps.add(f"make a C function of {self.function.name}")
        call.fault(Fault("RuntimeError", literal(f"{self.name} failed")))  # see `fail_raised`
        return call.leaves(self.function)[-1]

    def _opened(self, call: Call, thunk: ir.Value, user_data: ir.Value) -> None:
        e, (*present, _) = call.emitter, call.leaves(self.function)
        for flag in present:
            is_given = e.icmp("ne", flag, ir.Constant(flag.type, 0))
            thunk = e.select(is_given, thunk, e.null())
        call.callbacks[id(self)] = thunk, user_data, self

    def _during_the_call(
        self, call: Call, number: int, function: ir.Value
    ) -> tuple[ir.Value, ir.Value]:
        e = call.emitter
        frame, context, position = self._frame(call)
        e.store(function, e.index(frame, I64, 0))
        call.at_end(lambda well: close(call, frame))
        thunks = Thunks(call, self, number, position)
        call.checks += [lambda: require(call, frame), thunks.require_context]
        return thunks.thunk(frame), context

    def _frame(self, call: Call) -> tuple[ir.Value, ir.Value, int]:
        """The frame, the context, and how many frames behind the context it is.

        The frames of all callbacks with a context lie together, and each of these has the address
        of the first for its context: libraries hand one `void*` to several functions.
        """
        frames = call.frames
        if self.context is None or frames is None or not frames.free:
            frame = call.zeroed(FRAME, "frame")
            return frame, frame, 0
        position = frames.take()
        if frames.first is None:
            block = ir.ArrayType(FRAME, position + 1 + frames.free)
            frames.first = call.zeroed(block, "frames")
        e = call.emitter
        with e.within(e.current.entry_basic_block):
            frame = e.index(frames.first, FRAME, position)
        return frame, frames.first, position

    def given(self, call: Call) -> list[ir.Value]:
        """The leaves of the result of one that is kept: its handle."""
        return [call.kept_callbacks[id(self)]]


@dataclass(frozen=True, slots=True)
class UserData:
    """The context of a callback, as an argument of a C function, see `Callback.user_data`."""

    callback: Callback

    def types(self) -> list[ir.Type]:
        """See `HostArgument`."""
        return [PTR]

    def values(self, call: Call, what: str) -> list[ir.Value]:
        """See `HostArgument`."""
        return [self.callback.open(call)[1]]


def checked_kind(given: object, what: str) -> Kind:
    """The C type of a parameter of a function that C calls; an error if it is none."""
    if given is CString or given == "string":
        return "string"
    if given == "pointer":
        return "pointer"
    if not isinstance(given, str | DType):
        raise TypeError(f"{what}: expected a dtype, 'pointer' or CString, but got {shown(given)}")
    dtype = check_scalar_dtype(as_dtype(given))
    if dtype.kind == "float" and dtype.bits < 32:
        raise ValueError(f"{what}: C has no {dtype.name} as a parameter: take float32 or uint16")
    return dtype


def checked_result(given: object, what: str) -> DType | Literal["pointer"]:
    """The C type of its result; ValueError for a text, which nobody would own."""
    kind = checked_kind(given, what)
    if kind == "string":
        raise ValueError(
            f"{what}: nobody would own the text that it returns: let it return a pointer"
        )
    return kind
