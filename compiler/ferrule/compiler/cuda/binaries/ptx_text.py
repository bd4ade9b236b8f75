"""Reads the parts of PTX text that a launch needs: version, target, kernels and their parameters.

From the PTX ISA: ".version", ".target", ".entry", "Kernel Function Parameter Attributes", the
performance-tuning and cluster directives, and ".shared".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Final

from ferrule.compiler.cuda.binaries.cubins import FATBIN
from ferrule.compiler.cuda.binaries.parameters import (
    Dims,
    KernelParameter,
    KernelParameters,
    Variable,
)
from ferrule.compiler.cuda.kernelfacts import KernelFacts
from ferrule.runtime.binaries.elf import ObjectFileError, check_magic
from ferrule.specs.deferred import dataclass

# Strings too, so that what looks like a comment inside of one stays. A comment that is never closed
# ends with the text.
_SKIPPED: Final = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
# `[^\S\n]` is white space but a newline.
_VERSION: Final = re.compile(r"^[^\S\n]*\.version\s+(\d{1,4})\.(\d{1,4})", re.MULTILINE)
_ADDRESS_SIZE: Final = re.compile(r"^[^\S\n]*\.address_size\s+(\d+)", re.MULTILINE)
_TARGET: Final = re.compile(r"^[^\S\n]*\.target\s+(sm_\d{1,4}[af]?)\b", re.MULTILINE)
_NAME: Final = r"[A-Za-z_$%][\w$]*"
# A name may begin with $ or %, so \b would find the rest of one.
_WORD: Final = re.compile(rf"(?<![\w$%]){_NAME}")
_INTEGER: Final = re.compile(r"\d\w*")
_ENTRY: Final = re.compile(
    rf"(?:(\.extern)\s+|\.visible\s+|\.weak\s+)?\.entry\s+({_NAME})\s*(?:\(([^)]*)\))?([^{{;(]*)([{{;])"
)
_BEGUN: Final = re.compile(r"(?<![\w$%])\.entry\b")
_PARAM: Final = re.compile(
    rf"\.param\s+(?P<attributes>(?:\.[A-Za-z]\w*(?:\s+\d\w*)?\s*)+)\s{_NAME}\s*(?P<array>(?:\[\s*(?:\d\w*)?\s*\]\s*)*)"
)
_SHARED: Final = re.compile(
    r"(\.extern\s+|\.ptr\s+)?\.shared\s+"
    r"(?P<attributes>(?:\.[A-Za-z]\w*(?:\s+\d\w*)?\s*)+)\s(?P<names>[^;{}]*)"
)
_GLOBAL: Final = re.compile(
    r"(?:^|[;}])\s*(\.extern\s+)?(?:\.(?:visible|weak|common)\s+)?\.(?P<space>const|global)\s+"
    r"(?:\.attribute\s*\([^)]*\)\s*)?"
    r"(?P<attributes>(?:\.[A-Za-z]\w*(?:\s+\d\w*)?\s*)+)\s(?P<names>[^;{}=]*)(?P<value>=?)",
    re.MULTILINE,
)
_OWN: Final = ("$", "__nv_", "__cuda")
"""Prefixes of a compiler's own variables."""
_FUNCTION: Final = re.compile(
    rf"\.func\s*(?:\([^)]*\)\s*)?({_NAME})\s*(?:\([^)]*\))?[^{{;]*([{{;])"
)
_VARIABLE: Final = re.compile(rf"({_NAME})\s*((?:\[\s*(?:\d\w*)?\s*\]\s*)*)")
_DIRECTIVE: Final = re.compile(r"\.(reqntid|maxntid|reqnctapercluster)\s+(\d\w*(?:\s*,\s*\d\w*)*)")
_ALIGN: Final = re.compile(r"\.align\s+(\d\w*)")
_TYPE: Final = re.compile(r"\.(v2|v4)\b|\.([busf]|bf)(8|16|32|64|128)(x2)?\b")
_LONGEST: Final = 66
"""The characters of the longest integer, one of 64 binary digits."""
_OPAQUE: Final = re.compile(r"\.(?:texref|samplerref|surfref)\b")


@dataclass(frozen=True, slots=True)
class Ptx:
    """The content of a text: version of PTX, architecture, and its kernels in order."""

    version: tuple[int, int]
    arch: str
    kernels: tuple[KernelParameters, ...]


def read_ptx(text: str) -> Ptx:
    """Read PTX.  ObjectFileError, a ValueError, for text that is not PTX or is truncated."""
    text = _SKIPPED.sub(lambda found: found[0] if found[0][0] == '"' else " ", text)
    version, target = _VERSION.search(text), _TARGET.search(text)
    if version is None or target is None:
        raise ObjectFileError(f"wanted PTX text, with .version and .target, got {_what(text)}")
    addresses = _ADDRESS_SIZE.search(text)
    if addresses is not None and addresses[1] != "64":
        raise ObjectFileError(
            f"wanted PTX with addresses of 64 bits, got .address_size {addresses[1]}: compile it "
            "with -m64"
        )
    plain = re.sub(r'"(?:\\.|[^"\\\n])*"', '""', text)
    # A text that lost its end has an open brace, unless it was cut between two functions.
    if plain.count("{") != plain.count("}"):
        raise ObjectFileError(
            f"the PTX is cut off: {plain.count('{')} braces open, {plain.count('}')} close"
        )
    begun, whole = len(_BEGUN.findall(plain)), len(_ENTRY.findall(plain))
    if begun != whole:
        raise ObjectFileError(
            f"the PTX is cut off: it begins {begun} kernels and has the code of {whole}"
        )
    arch = target[1]
    return Ptx(
        (int(version[1]), int(version[2])),
        arch,
        tuple(_kernels(plain, arch)),
    )


def facts_of_ptx(text: str) -> tuple[KernelFacts, ...]:
    """The facts about kernels in PTX that its cubin lacks.  Raises as `read_ptx`."""
    return tuple(
        KernelFacts(
            each.kernel,
            variables=frozenset(variable.name for variable in each.variables if variable.is_used),
            dynamic_shared=each.dynamic_shared,
        )
        for each in read_ptx(text).kernels
    )


def _what(text: str) -> str:
    if not text.strip():
        return "no text"
    line = text.strip().splitlines()[0]
    return f"text that begins with {line[:40]!r}"


def as_text(data: bytes) -> str:
    """The text of a PTX file, without the NUL that may end it.

    ObjectFileError, with a description of the bytes, unless they are ASCII text, as PTX is.
    """
    if data.startswith(FATBIN):
        raise ObjectFileError(
            "wanted PTX text, got a fatbin: cuobjdump -xptx all takes the PTX out of it"
        )
    if b"\0" in data.rstrip(b"\0") or not data.isascii():
        if data.isascii() or b".version" in data and data[:4] != b"\x7fELF":
            raise ObjectFileError(f"wanted PTX text, which is ASCII, got {_odd(data)}")
        try:
            check_magic(data)
        except ObjectFileError as error:
            said = str(error).replace("wanted an ELF object", "wanted PTX text")
            raise ObjectFileError(said) from None
        raise ObjectFileError("wanted PTX text, got an ELF file: is it a cubin?")
    return data.rstrip(b"\0").decode("ascii")


def _odd(data: bytes) -> str:
    """The first byte that is invalid in PTX, and its line."""
    at = next(i for i, byte in enumerate(data) if byte == 0 or byte > 127)
    line = data[:at].count(b"\n") + 1
    return f"the byte {data[at]:#04x} in line {line}"


def _kernels(text: str, arch: str) -> Iterator[KernelParameters]:
    module, end, bodies = "", 0, []
    for found in _ENTRY.finditer(text):
        if found[1] or found[5] == ";":
            continue
        body = _body(text, found.end())
        bodies.append((found, body))
        module += text[end : found.end()]
        end = found.end() + len(body)
    module += text[end:]
    outer, variables = dict(_shared(module)), list(_variables(module))
    dynamic = {name for found in _SHARED.finditer(module) for name in _dynamic(found)}
    functions = _functions(module) if variables or dynamic else {}
    for found, body in bodies:
        own = [place for _, place in _shared(body)]
        words = frozenset(_WORD.findall(body) if outer or variables or dynamic else ())
        used = [place for name, place in outer.items() if name in words]
        reached = _reached(words, functions)
        dims = {name: _dims(numbers) for name, numbers in _DIRECTIVE.findall(found[4])}
        yield KernelParameters(
            found[2],
            arch,
            tuple(_laid_out([_parameter(each) for each in _split(found[3] or "")])),
            required_block=dims.get("reqntid"),
            max_block=dims.get("maxntid"),
            cluster=dims.get("reqnctapercluster"),
            static_shared=_packed([*used, *own]),
            variables=tuple(replace(each, is_used=each.name in reached) for each in variables),
            dynamic_shared=not dynamic.isdisjoint(reached),
        )


def _variables(text: str) -> Iterator[Variable]:
    """The variables of a module, without the compiler's own and those of other modules."""
    for found in _GLOBAL.finditer(text):
        if found[1] or _OPAQUE.search(found["attributes"]):
            continue
        size, _ = _type(found["attributes"], found[0])
        for name, array in _VARIABLE.findall(found["names"]):
            if not name.startswith(_OWN):
                is_set, is_constant = bool(found["value"]), found["space"] == "const"
                yield Variable(name, size * _count(array), is_set, is_constant)


def _dynamic(found: re.Match[str]) -> list[str]:
    """The names of variables in shared memory whose size the launch sets."""
    is_extern = found[1] is not None and found[1].startswith(".extern")
    return [name for name, _ in _VARIABLE.findall(found["names"])] if is_extern else []


def _functions(text: str) -> dict[str, frozenset[str]]:
    """The words of each function that is not a kernel."""
    return {
        found[1]: frozenset(_WORD.findall(_body(text, found.end())))
        for found in _FUNCTION.finditer(text)
        if found[2] == "{"
    }


def _reached(words: frozenset[str], functions: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """These words, and transitively the words of all functions that they name."""
    reached, to_do = set(words), [each for each in functions if each in words]
    while to_do:
        more = functions[to_do.pop()] - reached
        reached |= more
        to_do += [each for each in functions if each in more]
    return frozenset(reached)


def _body(text: str, start: int) -> str:
    """The text between an opening brace and the brace that closes it."""
    depth = 1
    for found in re.compile(r"[{}]").finditer(text, start):
        depth += 1 if found[0] == "{" else -1
        if not depth:
            return text[start : found.start()]
    raise ObjectFileError("the PTX is cut off: the code of a kernel does not end")


def _dims(numbers: str) -> Dims:
    x, y, z = [*map(_integer, _INTEGER.findall(numbers)), 1, 1][:3]
    return x, y, z


def _integer(text: str) -> int:
    """An integer in PTX: decimal, hexadecimal, octal after a 0, binary, with or without a U (PTX
    ISA, "Integer Constants")."""
    digits = text.removesuffix("U")
    try:
        if len(digits) <= _LONGEST:
            return int(digits, 8 if digits.isdecimal() and digits[0] == "0" else 0)
    except ValueError:
        pass
    raise ObjectFileError(f"the PTX has a number that cannot be read: {text[:40]!r}")


def _split(parameters: str) -> list[str]:
    return [each.strip() for each in parameters.split(",") if each.strip()]


def _parameter(text: str) -> tuple[int, int]:
    """Size and alignment of a parameter."""
    found = _PARAM.fullmatch(text)
    if found is None:
        raise ObjectFileError(f"the PTX has a parameter that cannot be read: {text!r}")
    size, align = _type(found["attributes"], text)
    return size * _count(found["array"]), align


def _type(attributes: str, text: str) -> tuple[int, int]:
    """Size and alignment of a type; an alignment after `.ptr` belongs to the pointee, and is
    ignored."""
    if _OPAQUE.search(attributes):
        # A texture, sampler or surface is a handle of 64 bits (PTX ISA, opaque types).
        return 8, 8
    own = attributes.split(".ptr", maxsplit=1)[0]
    size, lanes = 0, 1
    for vector, _, bits, pair in _TYPE.findall(own):
        if vector:
            lanes = int(vector[1])
        else:
            size = int(bits) // 8 * (2 if pair else 1)
    if not size:
        raise ObjectFileError(f"the PTX has a type that cannot be read: {text!r}")
    found = _ALIGN.search(own)
    align = size * lanes if found is None else _integer(found[1])
    if align < 1:
        raise ObjectFileError(f"the PTX has an alignment of 0: {text!r}")
    return size * lanes, align


def _count(array: str) -> int:
    return prod(map(_integer, _INTEGER.findall(array)))


def _laid_out(parameters: Sequence[tuple[int, int]]) -> Iterator[KernelParameter]:
    end = 0
    for size, align in parameters:
        start = -(-end // align) * align
        yield KernelParameter(start, size, align)
        end = start + size


def _shared(text: str) -> Iterator[tuple[str, tuple[int, int]]]:
    """The variables in shared memory with a static size, with size and alignment."""
    for found in _SHARED.finditer(text):
        if found[1]:
            continue
        size, align = _type(found["attributes"], found[0])
        for name, array in _VARIABLE.findall(found["names"]):
            yield name, (size * _count(array), align)


def _packed(places: Sequence[tuple[int, int]]) -> int:
    """The bytes of these variables when they are laid out in order, each aligned."""
    return max((each.offset + each.size for each in _laid_out(places)), default=0)
