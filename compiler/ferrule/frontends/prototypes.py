"""Checks that a function of a C source takes the arguments of a call, and returns the expected
type: the source's compiler is asked.

Lines are added after the source that initialise a float with the function: this is an error whose
message shows the function's type, with all of its parameters; pointers of casts are shown in the
same way.  If a type is a struct, an enum or a typedef, the compiler is asked a second time, for its
size.  If a compiler does not answer, nothing is checked.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Final

from ferrule.compiler.conventions.arguments import Cast
from ferrule.compiler.conventions.c.by_value import Shape
from ferrule.compiler.conventions.c.returns import Checked, return_type
from ferrule.compiler.conventions.launches.restrict import Taken, taken_addresses
from ferrule.compiler.conventions.launches.types import check_value, may_be_enum, refused, too_loose
from ferrule.compiler.conventions.launches.values import Given, given_values
from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.compiler.spelledtypes import (
    ARITHMETIC,
    Spelled,
    as_called,
    parameter_list,
    read_type,
    result_of,
)
from ferrule.frontends import returned
from ferrule.frontends.arraysizes import declared_arrays
from ferrule.frontends.laidout import NO_ADDRESSES, check_layouts
from ferrule.frontends.layouts import Debugging, Leaf
from ferrule.frontends.sources import Source
from ferrule.specs import Scalar
from ferrule.specs.deferred import dataclass

if TYPE_CHECKING:
    from ferrule.compiler.conventions import CFunction
    from ferrule.compiler.conventions.c.host_arguments import CArgument
    from ferrule.specs import Signature

_SHOWN: Final = "shown"
_ALIGNED: Final = "aligned"
_SIZED: Final = "sized"
_ABI: Final = "abi"
_PASSED: Final = "passed"
_ARRAYS: Final = "arrays"
"""The names of the files of the questions in the compiler's messages."""

_PLAIN: Final = (
    "-fsyntax-only",
    "-fdiagnostics-color=never",
    "-Wno-error",
    "-Wno-unused-command-line-argument",
)
_SAID: Final = re.compile(r"^(\w+):(\d+):(?:\d+:)? (?:fatal )?error: (.*)", re.MULTILINE)
_QUOTED: Final = re.compile(r"""(['"])(.*?)\1(?: [({]aka '([^']*)'[)}])?""")
_ROWS: Final = re.compile(r"\[[A-Za-z_]\w*\]$")
"""Matches the type of a parameter that is a pointer to an array of variable length."""
_NEGATIVE: Final = re.compile("negative")
_PROMOTED: Final = {
    "float32": "float64", "bool": "int32", "int8": "int32", "int16": "int32", "uint8": "int32",
    "uint16": "int32",
}  # fmt: skip
"""Numbers that C passes as another type if a function has no prototype (C11, 6.5.2.2)."""
_OWN: Final = (
    "a class with a copy constructor, a move constructor or a destructor of its own is no struct "
    "by value: let the function "
)


@dataclass(frozen=True, slots=True)
class Prototype:
    """A function's type: as written in the source, and with typedefs resolved."""

    written: tuple[str, ...]
    parameters: tuple[str, ...]
    result: str
    is_told: bool = True
    """Whether it declares its parameters: `f()` in C does not."""
    defined: tuple[bool, ...] = ()
    """For each parameter whether its definition has `restrict`, where the type does not show it:
    C++."""
    members: tuple[Taken, ...] = ()
    """The addresses in structs that a call passes."""
    arrays: Mapping[int, tuple[str, int]] = field(default_factory=dict)
    """For parameters that are arrays of known size: the declaration, and the number of elements."""

    @property
    def types(self) -> list[Spelled]:
        """The types of the parameters."""
        return [read_type(each) for each in self.parameters]

    @property
    def restricted(self) -> tuple[bool, ...]:
        """For each parameter whether it is an address that is declared `restrict`."""
        return self.defined or tuple(each.is_restrict for each in self.types)

    def taken(self, arguments: Sequence[CArgument]) -> list[Taken]:
        """The addresses that a call with these arguments passes, including those in structs."""
        return [*taken_addresses(arguments, self.types, self.restricted), *self.members]


_Said = dict[tuple[str, int], str]


@dataclass(frozen=True, slots=True)
class Callee:
    """A call: the function's name in its source, with namespaces, and its linker symbol."""

    function: str
    symbol: str
    arguments: tuple[CArgument, ...]
    returns: Checked
    variadic_from: int | None


def check_call(
    command: Sequence[str], source: Source, signature: Signature, call: CFunction
) -> Prototype | None:
    """The type of the function, None if the compiler does not show it.

    `command` is the command of the compiler that compiled the source, as a list of words.  Raises
    CompileError if the function's parameters do not match the arguments, if it returns another
    type, and for a cast to a type that the source does not have.  Arguments of a `...` are not
    compared.
    """
    called = Callee(call.function, call.function, call.arguments, call.returns, call.variadic_from)
    debugging = Debugging(command, source.text, source.language)
    found = _checked(command, source, debugging, signature, called)
    if found is not None or source.language != "c++":
        return found
    name = debugging.qualified_name(call.function)
    named = called if name is None else replace(called, function=name)
    return None if named == called else _checked(command, source, debugging, signature, named)


def _checked(
    command: Sequence[str],
    source: Source,
    debugging: Debugging,
    signature: Signature,
    called: Callee,
) -> Prototype | None:
    values = [each for listed in given_values(signature, called.arguments) for each in listed]
    casts = [each for each in values if each.pointer is not None]
    said = _said(command, source, _first_questions(called.function, casts))
    prototype = _prototype(said.get((_SHOWN, 1), ""), source.language)
    if prototype is None:
        return None
    _check_abi(called.function, said)
    parameters = prototype.parameters
    if not prototype.is_told:
        _check_promoted(called.function, values)
        _check_result(called, prototype.result, {}, asked=False)
        return prototype
    _check_count(signature, called, values, parameters)
    values = list(_shown_casts(called.function, said, values))
    for position, (given, text) in enumerate(zip(values, _fixed(parameters), strict=False)):
        check_value(called.function, position, given, _passed(called.function, position, text))
        _check_reference(called.function, position, given, text)
    _check_rows(called, values, parameters)
    _check_integers(called.function, values, prototype)
    _check_alignments(called.function, said, values, parameters)
    _check_others(command, source, debugging, called, values, prototype)
    asked = _has_layouts(values, prototype)
    members = check_layouts(debugging, signature, called, values, _fixed(parameters), asked=asked)
    arrays = _arrays(command, source, called.function, prototype)
    prototype = replace(prototype, members=tuple(members), arrays=arrays)
    return _with_restrict(debugging, source, called.symbol, prototype)


def _with_restrict(
    debugging: Debugging, source: Source, symbol: str, prototype: Prototype
) -> Prototype:
    """The prototype with the `restrict` qualifiers, which C++ omits from a function's type."""
    if source.language != "c++" or not any(each.stars for each in prototype.types):
        return prototype
    found = debugging.restricted_parameters(symbol)
    if found is None or len(found) != len(_fixed(prototype.parameters)):
        return prototype
    return replace(prototype, defined=found)


def _arrays(
    command: Sequence[str], source: Source, function: str, prototype: Prototype
) -> Mapping[int, tuple[str, int]]:
    """The parameters that are declared as arrays of known size."""
    if not any(
        each.stars or text.endswith("&")
        for each, text in zip(prototype.types, prototype.parameters, strict=True)
    ):
        return {}

    def shown(questions: Sequence[str]) -> list[str]:
        said = _said(command, source, _file(_ARRAYS, questions))
        return [said.get((_ARRAYS, line), "") for line in range(1, len(questions) + 1)]

    done = subprocess.run(
        [*command, "-E", "-P", "-x", source.language, "-"],
        input=source.text.encode("utf-8", "surrogateescape"),
        capture_output=True,
        check=False,
    )
    text = done.stdout.decode("utf-8", "replace") or source.text
    return declared_arrays(text, function, shown)


def _prototype(words: str, language: str) -> Prototype | None:
    """A function's type from the compiler's message; None if the message shows no type."""
    written, plain = _types(words)
    if not plain:
        return None
    taken, known = parameter_list(written), parameter_list(plain)
    is_told = language == "c++" or known is not None
    return Prototype(taken or (), known or (), result_of(plain) or "", is_told)


def _types(words: str) -> tuple[str, str]:
    """The type of a function in the compiler's message, as written and with typedefs resolved."""
    for found in _QUOTED.finditer(words):
        if "(" in found[2]:
            return found[2], found[3] or found[2]
    return "", ""


# ---- what is asked ----


def _said(command: Sequence[str], source: Source, questions: str) -> _Said:
    """The compiler's errors, by the file of a question and the line in it; g++ reports two errors
    for some lines."""
    done = subprocess.run(
        [*command, *_PLAIN, "-x", source.language, "-"],
        input=f"{source.text}\n{questions}".encode("utf-8", "surrogateescape"),
        capture_output=True,
        env={**os.environ, "LC_ALL": "C"},
        check=False,
    )
    said: _Said = {}
    for name, line, words in _SAID.findall(done.stderr.decode("utf-8", "replace")):
        before = said.get((name, int(line)))
        said[name, int(line)] = words if before is None else f"{before}\n{words}"
    return said


def _first_questions(function: str, casts: Sequence[Given]) -> str:
    """Lines that show the types of the function and of pointers, and whether these are aligned."""
    pointers = [each.pointer.text for each in casts if each.pointer is not None]
    shown = [f"static float ferrule_shown = ({function});"]
    shown += [
        f"static float ferrule_shown_{i} = (void (*)({text}))0;" for i, text in enumerate(pointers)
    ]
    aligned = [
        _aligned(i, text, each.align)
        for i, (text, each) in enumerate(zip(pointers, casts, strict=True))
    ]
    return _file(_SHOWN, shown) + _file(_ALIGNED, aligned) + _abi_question(function)


def _abi_question(function: str) -> str:
    """Lines with an error if a function has the Windows calling convention."""
    lines = [
        "#if defined(__x86_64__) && !defined(__cplusplus)",
        f"typedef __typeof__({function}) ferrule_called;",
        "typedef ferrule_called ferrule_windows __attribute__((ms_abi));",
        "typedef char ferrule_abi[__builtin_types_compatible_p(ferrule_called, ferrule_windows) "
        "? -1 : 1];",
        "#endif",
    ]
    return _file(_ABI, lines)


def _check_abi(function: str, said: _Said) -> None:
    if any(name == _ABI and _NEGATIVE.search(words) for (name, _), words in said.items()):
        raise CompileError(
            Diagnostic(
                f"{function} is declared ms_abi, which passes arguments in other registers",
                hint="leave the attribute out, or call it through a function without",
            )
        )


def _file(name: str, lines: Sequence[str]) -> str:
    return "\n".join([f'#line 1 "{name}"', *lines, ""])


def _shown_casts(function: str, said: _Said, values: Sequence[Given]) -> Iterator[Given]:
    """The values; the types of casts as the compiler names them."""
    line = 1
    for position, given in enumerate(values):
        if given.pointer is None:
            yield given
            continue
        line += 1
        words = said.get((_SHOWN, line), "")
        types = parameter_list(_types(words)[1])
        if not types:
            raise CompileError(
                Diagnostic(
                    f"argument #{position} of {function} is {given.what}, but {given.pointer.text} "
                    f"is no type of the source: {words}"
                )
            )
        yield replace(given, pointer=replace(read_type(types[0]), text=given.pointer.text))


# ---- what is compared ----


def _fixed(parameters: Sequence[str]) -> list[str]:
    return [each for each in parameters if each != "..."]


def _check_count(
    signature: Signature, called: Callee, values: Sequence[Given], parameters: Sequence[str]
) -> None:
    function, is_open = called.function, "..." in parameters
    if is_open and called.variadic_from is None:
        raise CompileError(
            Diagnostic(
                f"{function} takes any number of arguments, which are passed in another way",
                hint="variadic_from=… is the position of the first argument that is one of its "
                "`...`",
            )
        )
    if not is_open and called.variadic_from is not None:
        raise CompileError(Diagnostic(f"{function} has no `...`", hint="leave variadic_from away"))
    given, wanted = len(values), len(_fixed(parameters))
    if given == wanted or (is_open and given > wanted):
        _check_dots(signature, called, wanted)
        return
    listed = ", ".join(f"#{i} {each.what}" for i, each in enumerate(values)) or "nothing"
    raise CompileError(
        Diagnostic(
            f"{function} takes {', '.join(parameters) or 'nothing'}: {wanted} in all, but the call "
            f"gives it {given}",
            hint="arguments=[…] lists what it takes, results=[…] too, by their .data; left out, it "
            "is the tensors and numbers of the signature, without results",
            notes=(f"the list: {listed}",),
        )
    )


def _check_dots(signature: Signature, called: Callee, wanted: int) -> None:
    """Raises CompileError if the arguments of a `...` begin at another position than in the
    function's type."""
    if called.variadic_from is None:
        return
    before = given_values(signature, called.arguments[: called.variadic_from])
    if sum(map(len, before)) != wanted:
        raise CompileError(
            Diagnostic(
                f"{called.function} has {wanted} parameters before its `...`, but "
                f"variadic_from={called.variadic_from} has {sum(map(len, before))}",
                hint="it is the position of the first argument that is one of its `...`",
            )
        )


def _check_promoted(function: str, values: Sequence[Given]) -> None:
    """Raises CompileError for a number that a function without a prototype takes as another
    type."""
    for position, given in enumerate(values):
        promoted = _PROMOTED.get(given.dtype or "")
        if given.kind == "number" and promoted is not None:
            raise CompileError(
                Diagnostic(
                    f"argument #{position} of {function} is {given.what}, but a function without a "
                    f"prototype takes it as {promoted}",
                    hint="declare the types between the parentheses, "
                    f"`{function}(float x, int n)`; or give it what it takes, conventions.cast(…, "
                    f"{promoted!r})",
                )
            )


def _passed(function: str, position: int, text: str) -> Spelled:
    """The type of a parameter.  Raises CompileError for one to which nothing can be passed."""
    wanted = read_type(text)
    if wanted.is_number and wanted.dtype in ("float16", "bfloat16"):
        raise CompileError(
            Diagnostic(
                f"parameter #{position} of {function} is {text}, which cannot be passed by value",
                hint="let it take the bits, a uint16_t, or an address",
            )
        )
    return wanted


def _check_reference(function: str, position: int, given: Given, text: str) -> None:
    """Raises CompileError for an address that may be null and is passed to a C++ reference."""
    if given.may_be_null and text.rstrip().endswith("&"):
        hint = (
            "a reference is never null: say nullable=False of a Pointer, or let it take a pointer"
        )
        raise refused(function, position, given, read_type(text), hint)


def _check_rows(called: Callee, values: Sequence[Given], parameters: Sequence[str]) -> None:
    """Raises CompileError for rows of `x[][n]` whose distance no number of the call gives.

    The type does not show which parameter `n` is; a number that the caller passes may have any
    value.
    """
    given = {each.value if isinstance(each, Cast) else each for each in called.arguments}
    if any(isinstance(each, Scalar) and each.dtype.kind in ("int", "uint") for each in given):
        return
    for position, (each, text) in enumerate(zip(values, _fixed(parameters), strict=False)):
        if len(each.shape) < 2 or not _ROWS.search(text) or each.pointer is not None:
            continue
        step = each.strides[-2]
        if step not in given and each.shape[-2] != 1:
            hint = (
                f"its rows lie {step} elements apart, which is none of the numbers that the call "
                "gives"
            )
            raise refused(called.function, position, each, read_type(text), hint)


def _check_integers(function: str, values: Sequence[Given], prototype: Prototype) -> None:
    """Raises CompileError for an address that is passed to a plain C integer, or to an integer type
    that holds no address."""
    pairs = zip(values, _fixed(prototype.written), _fixed(prototype.parameters), strict=False)
    for position, (given, written, text) in enumerate(pairs):
        name = read_type(written).name
        is_plain = name in ARITHMETIC or name in NO_ADDRESSES
        if given.kind == "address" and is_plain and not read_type(text).stars:
            hint = "an integer that is an address is an intptr_t or a uintptr_t, or a pointer"
            raise refused(function, position, given, read_type(written), hint)


def _check_alignments(
    function: str, said: _Said, values: Sequence[Given], parameters: Sequence[str]
) -> None:
    line = 0
    for position, (given, text) in enumerate(zip(values, _fixed(parameters), strict=False)):
        if given.pointer is None:
            continue
        line += 1
        if _NEGATIVE.search(said.get((_ALIGNED, line), "")):
            raise too_loose(function, position, given, read_type(text))


def _has_layouts(values: Sequence[Given], prototype: Prototype) -> bool:
    """Whether there is a struct, a function, or an address whose type a typedef may align: a name,
    or an array, whose typedef the compiler does not show."""
    listed = zip(values, _fixed(prototype.parameters), _fixed(prototype.written), strict=False)
    return any(
        given.memory is not None
        or given.function is not None
        or may_be_enum(given, kind)
        or bool(given.align and kind.stars)
        and (bool(kind.lengths) or as_called(read_type(written)).name != as_called(kind).name)
        for given, kind, written in ((each, read_type(text), said) for each, text, said in listed)
    )


def _aligned(number: int, pointer: str, align: int) -> str:
    """A line that declares an array of negative size if the type behind a pointer has a greater
    alignment."""
    right = f"__alignof__(*({pointer})0) <= {align}"
    return f"typedef char ferrule_aligned_{number}[{right} ? 1 : -1];"


def _check_others(
    command: Sequence[str],
    source: Source,
    debugging: Debugging,
    called: Callee,
    values: Sequence[Given],
    prototype: Prototype,
) -> None:
    """Compares types that names do not determine: structs and enums, by value and returned."""
    unknown = list(_unknown(values, prototype))
    is_told = returned.spelled(prototype.result) is not None
    if not unknown and is_told:
        _check_result(called, prototype.result, {}, asked=False)
        return
    sized = [_sized(i, text, given) for i, (_, given, text) in enumerate(unknown)]
    is_cpp = source.language == "c++"
    size = _result_size(called)
    text = _file(_SIZED, sized)
    if is_cpp:
        text += returned.questions_of_cpp(prototype.result, size)
        text += _file(_PASSED, [*_copied(called, prototype, [kind for _, _, kind in unknown])])
    else:
        listed = ", ".join(f"*(__typeof__({each})*)0" for each in _fixed(prototype.written))
        text += returned.questions(called.function, listed, size)
    said = _said(command, source, text)
    for line, (position, given, kind) in enumerate(unknown, 1):
        if (_SIZED, line) in said:
            hint = f"its size, or its kind, is another; {kind} is what it takes"
            raise refused(called.function, position, given, read_type(kind), hint)
        if (_PASSED, line) in said:
            raise refused(
                called.function, position, given, read_type(kind), f"{_OWN}take its address"
            )
    if (_PASSED, len(unknown) + 1) in said:
        raise CompileError(
            Diagnostic(
                f"{called.function} returns {prototype.result}, but the call expects a struct",
                hint=f"{_OWN}write its members to a pointer",
            )
        )
    found = None if is_told else debugging.layouts(called.function, called.symbol)
    enum = None if found is None or found.result is None else found.result.enum
    _check_result(called, prototype.result, said, asked=not is_told, enum=enum)


def _copied(called: Callee, prototype: Prototype, kinds: Sequence[str]) -> Iterator[str]:
    """A line that declares an array of negative size for a C++ class that is not passed as its
    members are (Itanium C++ ABI, 3.1.2): for the parameters, and for the result if a struct is
    expected."""
    has_struct = isinstance(return_type(called.returns), Shape)
    for i, kind in enumerate([*kinds, *([prototype.result] if has_struct else [])]):
        copied = f"__is_trivially_constructible({kind}, const {kind}&)"
        moved = f"__is_trivially_constructible({kind}, {kind}&&)"
        left = f"__has_trivial_destructor({kind})"
        yield f"typedef char ferrule_passed_{i}[({copied} && {moved} && {left}) ? 1 : -1];"


def _unknown(values: Sequence[Given], prototype: Prototype) -> Iterator[tuple[int, Given, str]]:
    """The parameters passed by value whose types do not give their size: position, value, and
    type."""
    pairs = zip(values, _fixed(prototype.parameters), _fixed(prototype.written), strict=False)
    for position, (given, text, written) in enumerate(pairs):
        wanted = read_type(text)
        if not wanted.stars and (wanted.dtype is None or given.kind == "bytes"):
            yield position, given, written


def _sized(number: int, kind: str, given: Given) -> str:
    """A line that declares an array of negative size if a value does not match this type: bytes of
    another size, or a number that is no enum or has another size."""
    if given.kind == "bytes":
        right = f"sizeof({kind}) == {given.size}"
    else:
        bits = {"int8": 8, "int16": 16, "int64": 64, "uint8": 8, "uint16": 16, "uint64": 64}
        size = bits.get(given.dtype or "", 32) // 8
        # typeclass.h of GCC: 1 to 4 are integers, characters, enums and bools; 5 is a pointer.
        right = f"sizeof({kind}) == {size} && __builtin_classify_type(*({kind}*)0) < 5"
    return f"typedef char ferrule_sized_{number}[({right}) ? 1 : -1];"


def _result_size(called: Callee) -> int:
    wanted = return_type(called.returns)
    return wanted.size if isinstance(wanted, Shape) else 0


def _check_result(
    called: Callee, result: str | None, said: _Said, *, asked: bool, enum: Leaf | None = None
) -> None:
    lines = [
        line for (name, line), words in said.items()
        if name == returned.FILE and returned.failed(words)
    ]  # fmt: skip
    actual = returned.answered(lines) if asked else returned.spelled(result or "")
    if actual is not None:
        is_sized = returned.has_size(lines)
        size = _result_size(called)
        read = read_type(result or "")
        pointee = read.name if read.stars == 1 else f"{read.name}{'*' * (read.stars - 1)}"
        found = returned.Returned(actual, is_sized, is_enum=asked, pointee=pointee, enum=enum)
        returned.check_returned(called.function, found, called.returns, size)
