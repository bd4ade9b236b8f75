"""Headers that declare exported functions, for C and for C++.

Both include only `tvm/ffi/c_api.h` of tvm-ffi, so that they work with every version. A header
declares each function twice: with the packed ABI, and as a typed inline function that packs its
arguments. The typed function takes tensors as `DLTensor*`, numbers as C's own types, and values
without a C type as `TVMFFIAny`. It has no parameter for a constant or None, because these are known
at compile time.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, TypeAlias

from typing_extensions import assert_never

from ferrule import specs
from ferrule.runtime.abi import SYMBOL_PREFIX
from ferrule.specs import params
from ferrule.specs._version import __version__
from ferrule.specs.deferred import dataclass

Described: TypeAlias = "tuple[specs.Signature, str | None]"
"""The signature and the docstring of a function, for headers and stubs."""

_KEYWORDS: Final = frozenset(
    "alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl "
    "concept const const_cast constexpr continue decltype default delete do double dynamic_cast "
    "else enum explicit export extern false float for friend goto if inline int long mutable "
    "namespace new noexcept not not_eq nullptr operator or or_eq private protected public register "
    "reinterpret_cast requires restrict return short signed sizeof static static_assert "
    "static_cast struct switch template this thread_local throw true try typedef typeid typename "
    "typeof union unsigned using virtual void volatile wchar_t while xor xor_eq "
    "args result status raised returned".split()
)

_RESERVED: Final = re.compile(
    r"""
    _[A-Z].* | .*__.*                       # reserved everywhere
    | k?TVM_?FFI.* | k?DL[A-Z].* | FERRULE.*  # of tvm/ffi/c_api.h, DLPack and these headers
    | .*_t                                  # types of C and POSIX
    | (?:U?INT|SIZE|PTRDIFF|SIG_ATOMIC|WCHAR|WINT|RAND|EXIT|PATH|SSIZE|CHAR|LONG|LLONG)[A-Z0-9_]*_.+
    | (?:U?(?:INT|LONG|LLONG|SHRT|CHAR)|SCHAR)_.+
    """,
    re.VERBOSE,
)
"""Names that the headers or their includes use: types, functions and macros."""

_MACROS: Final = frozenset(
    "BUFSIZ EOF FALSE FILE I NULL TRUE assert errno ferrule i386 linux memset offsetof std stderr "
    "stdin stdout unix va_arg va_copy va_end va_list va_start".split()
)
"""More such names: from C++ headers, predefined by compilers, and used in the generated bodies."""

_FUNCTIONS: Final = frozenset(
    "abort abs atexit atof atoi atol atoll basename bcmp bcopy bzero calloc clearerr div "
    "environ exit explicit_bzero ffs ffsl ffsll free getenv index labs ldiv llabs lldiv main "
    "malloc memccpy memchr memcmp memcpy memfrob memmem memmove mempcpy memrchr printf puts rand "
    "rawmemchr realloc remove rename rindex scanf signal sprintf srand stpcpy stpncpy strcasecmp "
    "strcasestr strcat strchr strchrnul strcmp strcoll strcpy strcspn strdup strerror strfry "
    "strlcat strlcpy strlen strncasecmp strncat strncmp strncpy strndup strnlen strpbrk strrchr "
    "strsep strsignal strspn strstr strtok strverscmp strxfrm swab system time".split()
)
"""Functions of the C library; a parameter may hide them, but a function must not redefine them."""

_MORE_FUNCTIONS: Final = frozenset(
    "access alarm alloca arc4random asctime asprintf brk bsearch chdir chown chroot clearenv "
    "clock close confstr creat crypt ctermid ctime cuserid daemon difftime dprintf dup dup2 dup3 "
    "eaccess ecvt euidaccess execl execle execlp execv execve execvp execvpe fchdir fchown fclose "
    "fcloseall fcvt fdatasync fdopen feof ferror fexecve fflush fgetc fgetpos fgets fileno "
    "flockfile fmemopen fopen fork fpathconf fprintf fputc fputs fread freopen fscanf fseek "
    "fseeko fsetpos fsync ftell ftello ftruncate funlockfile fwrite gcvt getc getchar getenv "
    "getline getopt getpid getw gmtime isalnum isalpha isascii isatty isblank iscntrl isdigit "
    "isgraph islower isprint ispunct isspace isupper isxdigit lchown link localtime lockf lseek "
    "mblen mbstowcs mbtowc mkdtemp mkstemp mktemp mktime nanosleep nice open pathconf pause "
    "pclose perror pipe pipe2 popen pread profil pselect putc putchar putenv putw pwrite qsort "
    "raise random read readlink realpath rewind rmdir sbrk select setbuf setenv setvbuf sleep "
    "snprintf srandom sscanf strfmon strftime strptime strtod strtof strtol strtold strtoll "
    "strtoul strtoull symlink sync syscall sysconf tempnam tmpfile tmpnam toascii tolower toupper "
    "truncate ttyname tzset ungetc unlink unsetenv usleep valloc vasprintf vdprintf vfork "
    "vfprintf vfscanf vprintf vscanf vsnprintf vsprintf vsscanf wait wcstombs wctomb write".split()
)
"""More of them, of headers that a program may include beside ours."""

_MATHS: Final = frozenset(
    "acos acosh asin asinh atan atan2 atanh cabs cacos cacosh canonicalize carg casin casinh "
    "catan catanh cbrt ccos ccosh ceil cexp cimag clog clog10 conj copysign cos cosh cpow cproj "
    "creal csin csinh csqrt ctan ctanh dadd ddiv dfma dmul drem dsqrt dsub erf erfc exp exp10 "
    "exp2 expm1 fabs fadd fdim fdiv ffma finite floor fma fmax fmaximum fmaximum_mag "
    "fmaximum_mag_num fmaximum_num fmaxmag fmin fminimum fminimum_mag fminimum_mag_num "
    "fminimum_num fminmag fmod fmul frexp fromfp fromfpx fsqrt fsub gamma getpayload hypot ilogb "
    "isinf isnan j0 j1 jn ldexp lgamma llogb llrint llround log log10 log1p log2 logb lrint "
    "lround modf nan nearbyint nextafter nextdown nexttoward nextup pow remainder remquo rint "
    "round roundeven scalb scalbln scalbn setpayload setpayloadsig significand sin sincos sinh "
    "sqrt tan tanh tgamma totalorder totalordermag trunc ufromfp ufromfpx y0 y1 yn".split()
)
"""Functions of math.h and complex.h, each of which is there with the suffixes f and l as well."""


@dataclass(frozen=True, slots=True)
class _Slot:
    """One argument of the packed call: its C parameter, if it has one, and C code that packs it."""

    parameter: str
    packing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Result:
    """The result of the typed function: its C type (None: no result) and the code that reads it."""

    type: str | None
    read: str = ""


def c_header(stem: str, functions: Sequence[Described]) -> str:
    """The C header; it can be included in C++ as well."""
    parts = [
        _head(stem, ["stdbool.h", "stdint.h", "string.h"]),
        '#ifdef __cplusplus\nextern "C" {\n#endif\n',
        *(_c_function(*described) for described in functions),
        "#ifdef __cplusplus\n}\n#endif\n",
        f"#endif /* {_guard(stem, 'H')} */\n",
    ]
    return "\n".join(parts)


def cpp_header(stem: str, functions: Sequence[Described]) -> str:
    """The C++ header, for C++11 and later: errors are exceptions."""
    parts = [
        _head(stem, ["cstdint", "cstring", "stdexcept", "string"], "HPP"),
        _ERROR,
        *(_cpp_function(*described) for described in functions),
        f"#endif  // {_guard(stem, 'HPP')}\n",
    ]
    return "\n".join(parts)


def _guard(stem: str, suffix: str) -> str:
    word = re.sub(r"[^A-Za-z0-9]", "_", stem).upper()
    return f"FERRULE_EXPORT_{word}_{suffix}"


def _head(stem: str, includes: Sequence[str], suffix: str = "H") -> str:
    guard = _guard(stem, suffix)
    lines = [
        f"/* Made by ferrule {__version__}. It needs tvm/ffi/c_api.h, and libtvm_ffi to link. */",
        f"#ifndef {guard}",
        f"#define {guard}",
        "",
        *(f"#include <{name}>" for name in includes),
        "",
        "#include <tvm/ffi/c_api.h>",
        "",
    ]
    return "\n".join(lines)


def _declaration(name: str) -> str:
    return (
        f"int32_t {SYMBOL_PREFIX}{name}(void* handle, const TVMFFIAny* args, int32_t num_args,\n"
        f"    TVMFFIAny* result);\n"
    )


def _c_function(signature: specs.Signature, doc: str | None) -> str:
    slots, result = _slots(signature), _result(signature)
    parameters = [slot.parameter for slot in slots if slot.parameter]
    if result.type is not None:
        parameters.append(f"{result.type}* result")
    lines = [
        f"/* {signature.name} through TVM-FFI's packed ABI. */",
        _declaration(signature.name),
        _comment(
            signature,
            doc,
            "Returns 0, or -1 after an error was set: TVMFFIErrorMoveFromRaised gives it.",
        ),
        f"static inline int {_function_name(signature)}({', '.join(parameters) or 'void'}) {{",
        *_packed(signature.name, slots),
    ]
    if result.type is not None:
        lines.append(f"  if (status == 0) *result = {result.read.format('returned')};")
    return "\n".join([*lines, "  return status;", "}", ""])


def _cpp_function(signature: specs.Signature, doc: str | None) -> str:
    slots, result = _slots(signature), _result(signature)
    parameters = ", ".join(slot.parameter for slot in slots if slot.parameter)
    lines = [
        f'extern "C" {_declaration(signature.name)}',
        _comment(signature, doc, "Throws ferrule::Error."),
        f"inline {result.type or 'void'} {_function_name(signature)}({parameters}) {{",
        *_packed(signature.name, slots),
        "  if (status != 0) throw ferrule::Error::raised();",
    ]
    if result.type is not None:
        lines.append(f"  return {result.read.format('returned')};")
    return "\n".join([*lines, "}", ""])


def _packed(name: str, slots: Sequence[_Slot]) -> list[str]:
    """The call of the wrapper."""
    count = len(slots)
    return [
        # C has no arrays of length 0.
        f"  TVMFFIAny args[{max(1, count)}];",
        "  TVMFFIAny returned;",
        "  int status;",
        "  memset(args, 0, sizeof args);",
        "  memset(&returned, 0, sizeof returned);",
        *(
            f"  {line.format(arg=f'args[{i}]')}"
            for i, slot in enumerate(slots)
            for line in slot.packing
        ),
        f"  status = {SYMBOL_PREFIX}{name}(NULL, args, {count}, &returned);",
    ]


def _slots(signature: specs.Signature) -> list[_Slot]:
    return [
        _slot(param, name)
        for param, name in zip(signature.arguments, _names(signature), strict=True)
    ]


def _names(signature: specs.Signature) -> list[str]:
    """The names of the arguments in C: the parameters' names, changed if C does not allow them."""
    names: list[str] = []
    for i, param in enumerate(signature.arguments):
        name = param.name if param.name.isascii() else f"arg{i}"
        # Once only: a name with a suffix is free, even if `is_taken` would still match its prefix.
        name = f"{name}_" if is_taken(name) else name
        while name in names or name == signature.name or name in _KEYWORDS:
            name += "_"
        names.append(name)
    return names


def _function_name(signature: specs.Signature) -> str:
    """The name of the typed function: the function's own name, unless C uses this name already."""
    name = signature.name
    return f"{name}_" if is_taken(name) or _is_of_c(name) else name


def _is_of_c(name: str) -> bool:
    """Whether the C library has a function of this name, in whichever header."""
    is_maths = name in _MATHS or (name.endswith(("f", "l")) and name[:-1] in _MATHS)
    return is_maths or name in _FUNCTIONS or name in _MORE_FUNCTIONS


def is_taken(name: str) -> bool:
    """Whether C, C++ or an included header uses a name, so that no parameter can have it."""
    return name in _KEYWORDS or name in _MACROS or _RESERVED.fullmatch(name) is not None


def _slot(param: params.Param, name: str) -> _Slot:
    match param:
        case params.Tensor(owning=False):
            return _value(f"DLTensor* {name}", "kTVMFFIDLTensorPtr", f"v_ptr = {name}")
        case params.Optional(item=params.Tensor(owning=False)):
            packing = f"if ({name} != NULL) {{{{ {{arg}}.type_index = kTVMFFIDLTensorPtr; "
            return _Slot(f"DLTensor* {name}", (f"{packing}{{arg}}.v_ptr = {name}; }}}}",))
        case params.Scalar(dtype=dtype):
            return _number(dtype, name)
        case params.NoneValue():
            return _Slot("", ("{arg}.type_index = kTVMFFINone;",))
        case params.WithTraits(traits=params.Traits(c=params.CArgument() as c)):
            return _value(f"{c.type} {name}", c.index, f"{c.field} = {name}")
        # Before the ints: Python's bool is one of them.
        case params.Constant(value=bool(value)):
            return _value("", "kTVMFFIBool", f"v_int64 = {int(value)}")
        # C has no literal for -2^63: it is the negation of 2^63, which no int64 holds.
        case params.Constant(value=int(value)) if value > -(1 << 63):
            return _value("", "kTVMFFIInt", f"v_int64 = INT64_C({value})")
        case params.Constant() | params.Tensor() | params.Shape() | params.WithTraits():
            return _whole(name)
        case params.Tuple() | params.Optional() | params.Union():
            return _whole(name)
        case _:
            assert_never(param)


def _whole(name: str) -> _Slot:
    """An argument that C packs itself."""
    return _Slot(f"TVMFFIAny {name}", (f"{{arg}} = {name};",))


def _value(parameter: str, index: str, field: str) -> _Slot:
    return _Slot(parameter, (f"{{arg}}.type_index = {index};", f"{{arg}}.{field};"))


def _number(dtype: specs.DType, name: str) -> _Slot:
    if dtype.kind == "float":
        return _value(f"{_c_type(dtype)} {name}", "kTVMFFIFloat", f"v_float64 = {name}")
    if dtype.kind == "bool":
        return _value(f"bool {name}", "kTVMFFIBool", f"v_int64 = {name}")
    if dtype is specs.Uint64:
        # tvm-ffi has no unsigned integers, so C cannot pass a value that int64 cannot hold.
        return _value(f"int64_t {name}", "kTVMFFIInt", f"v_int64 = {name}")
    return _value(f"{_c_type(dtype)} {name}", "kTVMFFIInt", f"v_int64 = {name}")


def _result(signature: specs.Signature) -> _Result:
    match signature.result:
        case None | params.NoneValue():
            return _Result(None)
        case params.Scalar(dtype=dtype) if dtype is not specs.Uint64:
            field = "v_float64" if dtype.kind == "float" else "v_int64"
            return _Result(_c_type(dtype), f"({_c_type(dtype)}){{0}}.{field}")
    return _Result("TVMFFIAny", "{0}")


def _c_type(dtype: specs.DType) -> str:
    match dtype.kind:
        case "bool":
            return "bool"
        case "float":
            return "double" if dtype.bits == 64 else "float"
        case kind:
            return f"{kind}{dtype.bits}_t"


def _comment(signature: specs.Signature, doc: str | None, outcome: str) -> str:
    names = _names(signature)
    described = [
        f"{name}: {signature.kind(param, full=True)}"
        for param, name in zip(signature.arguments, names, strict=True)
    ]
    if signature.result is not None:
        kind = signature.kind_of_result(full=True)
        owned = ", to be released by the caller" if _result(signature).type == "TVMFFIAny" else ""
        described.append(f"result: {kind}{owned}")
    described += [f"requires: {each}" for each in signature.required()]
    lines = [str(signature), *(doc or "").splitlines(), "", *described, "", outcome]
    body = "\n".join(f" * {line}".rstrip() for line in "\n".join(lines).split("\n"))
    # Compilers warn about a trigraph even in a comment, and NUL is not a character of C source.
    plain = body.replace("??", "? ?").replace("\0", "\\0")
    return "/*" + plain.replace("*/", "* /").replace("/*", "/ *")[2:] + "\n */"


_ERROR: Final = """\
#ifndef FERRULE_ERROR
#define FERRULE_ERROR
namespace ferrule {
/* An error that a function raised: what() is its message, kind() the name of its class. */
class Error : public std::runtime_error {
 public:
  Error(const std::string& kind, const std::string& message)
      : std::runtime_error(message), kind_(kind) {}
  const std::string& kind() const { return kind_; }

  /* The error that this thread has raised, which is raised no longer. */
  static Error raised() {
    TVMFFIObjectHandle handle = NULL;
    TVMFFIErrorMoveFromRaised(&handle);
    if (handle == NULL) return Error("RuntimeError", "a call failed without an error");
    const TVMFFIErrorCell* cell = reinterpret_cast<const TVMFFIErrorCell*>(
        reinterpret_cast<const char*>(handle) + sizeof(TVMFFIObject));
    Error error(std::string(cell->kind.data, cell->kind.size),
                std::string(cell->message.data, cell->message.size));
    TVMFFIObjectDecRef(handle);
    return error;
  }

 private:
  std::string kind_;
};
}  // namespace ferrule
#endif  // FERRULE_ERROR
"""
