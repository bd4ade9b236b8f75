"""The type that a function of a C source returns, and whether the call expects it.

The type of most functions shows it.  For a struct, an enum and a typedef, the compiler is asked:
after the source there is an assertion for each possible type that the type of a call, which is
never executed, is not that one.  The assertion that fails names the type.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final, Literal, TypeAlias

from ferrule.compiler.conventions.c.outs import Out
from ferrule.compiler.conventions.c.returns import Checked, ReturnCode
from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.compiler.spelledtypes import DTYPES, read_type
from ferrule.frontends.codetypes import fits_enum
from ferrule.frontends.layouts import Leaf
from ferrule.specs import DType, as_dtype
from ferrule.specs.deferred import dataclass

_Returned: TypeAlias = "DType | Literal['pointer', 'string'] | None"

_NUMBERS: Final = (
    *("_Bool", "char", "signed char", "unsigned char", "short", "unsigned short", "int"),
    *("unsigned int", "long", "unsigned long", "long long", "unsigned long long"),
    *("float", "double"),
)
_DTYPES: Final = {name: DTYPES[name] for name in _NUMBERS}
_OTHERS: Final = ("void", "long double", "_Float16", "__bf16", "__int128", "unsigned __int128")
_CLASSES: Final = {"a pointer": 5, "a complex number": 9, "a struct": 12, "a union": 13}
"""Classes of types by the numbers of `__builtin_classify_type`."""

_SEVERAL: Final = ("a complex number", "a struct", "a union")
_ASKED: Final = (*_DTYPES, *_OTHERS, *_CLASSES)
_FAILED: Final = re.compile(r"static.assert(?:ion)? failed")
_TEXTS: Final = ("", "char", "signed char", "unsigned char", "void")
_ALIKE: Final = """\
template <class A, class B> struct ferrule_alike { static const bool is = false; };
template <class A> struct ferrule_alike<A, A> { static const bool is = true; };
template <class T, bool = __is_enum(T)> struct ferrule_plain { typedef T type; };
template <class T> struct ferrule_plain<T, true> { typedef __underlying_type(T) type; };
"""
"""The C++ replacement of C's `__builtin_types_compatible_p`: an enum is compatible with its
integers."""
FILE: Final = "returned"
"""The name of the assertions' file in the compiler's messages."""


def questions(function: str, arguments: str, size: int) -> str:
    """The assertions; `size` is that of the expected struct, in bytes."""
    made = f"({function})({arguments})"
    alike = f"__builtin_types_compatible_p(__typeof__({made}), {{}})"
    asked = [f"!{alike.format(each)}" for each in (*_DTYPES, *_OTHERS)]
    asked += [f"__builtin_classify_type({made}) != {each}" for each in _CLASSES.values()]
    asked.append(f"sizeof({made}) == {size}")
    lines = "\n".join(f'_Static_assert({each}, "");' for each in asked)
    return f'#line 1 "{FILE}"\nstatic void ferrule_{FILE}(void) {{\n{lines}\n}}\n'


def questions_of_cpp(result: str, size: int) -> str:
    """The same assertions for C++, about the return type: in C++ an expression that calls the
    function is not a constant."""
    plain = f"ferrule_plain<{result}>::type"
    asked = [f"!ferrule_alike<{plain}, {each}>::is" for each in (*_DTYPES, *_OTHERS)]
    asked += ["true", "true", f"!__is_class({result})", f"!__is_union({result})"]
    asked.append(f"sizeof({result}) == {size}")
    lines = "\n".join(f'static_assert({each}, "");' for each in asked)
    return f'{_ALIKE}#line 2 "{FILE}"\n{lines}\n'


def failed(words: str) -> bool:
    """Whether the compiler's message is that an assertion fails."""
    return _FAILED.search(words) is not None


def answered(lines: Collection[int]) -> str | None:
    """The type that a function returns, from the lines of the `questions` whose assertions fail;
    None for a type that was not among the questions."""
    return next((each for i, each in enumerate(_ASKED) if i + 2 in lines), None)


def has_size(lines: Collection[int]) -> bool:
    """Whether the result has the size that was asked for."""
    return len(_ASKED) + 2 not in lines


def spelled(result: str) -> str | None:
    """The kind that a function returns, from the name of its type; None if the name does not show
    it."""
    read = read_type(result)
    if read.stars:
        return "a pointer"
    name = "_Bool" if read.name == "bool" else read.name
    return name if name in (*_DTYPES, *_OTHERS) else None


@dataclass(frozen=True, slots=True)
class Returned:
    """The type that a function returns: the answer of `answered` or `spelled`; whether it has the
    size of the expected struct; whether an integer is an enum, whose signedness the compiler chose,
    and its values; and the type that a pointer points to, if it is known."""

    name: str
    is_sized: bool = False
    is_enum: bool = False
    pointee: str = ""
    enum: Leaf | None = None


def check_returned(function: str, found: Returned, wanted: Checked, size: int) -> None:
    """Raises CompileError if a function returns another type than the call expects; `size` is that
    of the expected struct."""
    actual = found.name
    if isinstance(wanted, Out):
        wanted = wanted.dtype
    if isinstance(wanted, ReturnCode) and wanted.of is not None:
        wanted = None
    if isinstance(wanted, tuple):
        if actual in _SEVERAL and found.is_sized:
            return
        what = f"{actual} of another size" if actual in _SEVERAL else actual
        said = f"a struct of {size} bytes"
    elif wanted == "string" and actual == "a pointer" and found.pointee not in _TEXTS:
        what, said = f"an address of {found.pointee}", "a string"
    elif _is_never_negative(actual, found, wanted):
        what, said = f"{actual}, which is never negative", "one that is where it fails"
    else:
        expected = wanted.dtype if isinstance(wanted, ReturnCode) else wanted
        if _fits(actual, expected, found.is_enum or isinstance(wanted, ReturnCode)):
            if isinstance(expected, DType) and found.enum is not None:
                _check_enum(function, found.enum, expected)
            return
        what, said = actual, _name(expected)
    raise CompileError(
        Diagnostic(f"{function} returns {what}, but the call expects {said}", hint=_hint(actual))
    )


def _check_enum(function: str, enum: Leaf, expected: DType) -> None:
    """Raises CompileError for an integer that does not have all values of an enum."""
    if fits_enum(expected, enum):
        return
    least, most = enum.values or (0, 0)
    what = f"an enum of {8 * enum.size} bits with values from {least} to {most}"
    kind = "int" if least < 0 or most < 1 << 8 * enum.size - 1 else "uint"
    raise CompileError(
        Diagnostic(
            f"{function} returns {what}, but the call expects {expected.name}",
            hint=f"write returns='{kind}{8 * enum.size}'",
        )
    )


def _is_never_negative(actual: str, found: Returned, wanted: Checked) -> bool:
    if not isinstance(wanted, ReturnCode) or wanted.fails != "negative" or found.is_enum:
        return False
    return actual in _DTYPES and as_dtype(_DTYPES[actual]).kind in ("uint", "bool")


def _fits(actual: str, wanted: _Returned, any_sign: bool) -> bool:
    if wanted is None:
        # A caller that ignores a long double leaves it on the x87 stack, which has 8 places.
        return actual not in ("a struct", "a union", "long double")
    if actual not in _DTYPES:
        return actual == "a pointer" and (isinstance(wanted, str) or _is_address(wanted))
    dtype = as_dtype(_DTYPES[actual])
    if isinstance(wanted, str):
        return wanted == "pointer" and _is_address(dtype)
    if dtype.kind == "float" or dtype.kind == "bool":
        return dtype == wanted or (dtype.kind == "bool" and wanted.name in ("int8", "uint8"))
    if wanted.kind == "float":
        return wanted.bits == 16 and actual == "unsigned short"
    alike = any_sign or dtype.kind == wanted.kind or actual == "char"
    return wanted.kind in ("int", "uint") and alike and dtype.bits == wanted.bits


def _is_address(dtype: DType) -> bool:
    return dtype.kind in ("int", "uint") and dtype.bits == 64


def _name(wanted: _Returned) -> str:
    match wanted:
        case None:
            return "nothing"
        case DType(name=name):
            return name
    return "a pointer"


def _hint(actual: str) -> str:
    match actual:
        case "void":
            return "write returns=None"
        case "a pointer":
            return "write returns='pointer'"
        case "a struct" | "a union" | "a complex number":
            return "list the dtypes of its members, returns=['float64', 'int32']"
    if actual in _DTYPES:
        return f"write returns={_DTYPES[actual]!r}"
    return "let the function write it to a pointer, in a type that a dtype has"
