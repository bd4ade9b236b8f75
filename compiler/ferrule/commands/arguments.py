"""The arguments of every command, and their help; nothing else of ferrule is imported for them."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any, Final, NoReturn, Protocol

from ferrule.commands.output import Output, tell

_FORMATS: Final = ("object", "library", "wheel")
_TARGETS: Final = ("cpu", "cuda")

VIEWS: Final = {
    "signature": "parameters, conditions and result (this is the default)",
    "ir": "kernel IR, of sources",
    "llvm": "LLVM's IR before optimisation, of sources",
    "asm": "assembly of the host code",
    "remarks": "what became of each loop and launch on the CPU, of sources",
    "ptx": "PTX of the kernels",
    "sass": "machine code of the kernels, by nvdisasm or cuobjdump",
    "metadata": "what a file says of its functions, as JSON",
}
"""What `ferrule inspect` shows of a function, with the help for each."""


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are a JSON object where the arguments ask for one."""

    def error(self, message: str) -> NoReturn:
        if "--json" not in sys.argv:
            super().error(message)
        output = Output(True, sys.stdout)
        output.put(error={"kind": "UsageError", "message": f"{self.prog}: {message}"})
        output.finish()
        raise SystemExit(2)

    def _print_message(self, message: str, file: Any = None) -> None:
        """Print help or an error; unlike argparse's own, it does not hide that nobody got it."""
        if file is sys.stdout:
            output = Output(False, file)
            output.line(message.rstrip("\n"))
            output.flush()
        elif message:
            tell(message.rstrip("\n"))


class _Version(argparse.Action):
    """Prints the version, which is imported for it: help needs nothing of ferrule, and the command
    that says what is missing must not miss it."""

    def __init__(self, option_strings: list[str], dest: str) -> None:
        what = "show program's version number and exit"
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, help=what)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from ferrule.specs._version import __version__

        print(f"ferrule {__version__}")
        parser.exit()


class Commands(Protocol):
    """The subparsers of argparse, whose class has no public name."""

    def add_parser(self, name: str, **options: Any) -> argparse.ArgumentParser: ...


def _add(commands: Commands, name: str, text: str, epilog: str) -> argparse.ArgumentParser:
    """The parser of a command: its first line of help is `text`, its examples are `epilog`."""
    parser = commands.add_parser(
        name,
        help=text,
        description=text[0].upper() + text[1:] + ".",
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser


_EPILOG: Final = """\
examples:
  ferrule build kernels.py -o dist --format wheel
  ferrule inspect dist/libkernels.so --signature
  ferrule check dist/libkernels.so
  ferrule cache info
  ferrule doctor

'ferrule COMMAND --help' says more about each.
"""

_BUILD: Final = """\
FILE.py lists libraries at its top level:

    library = fe.Library("mykernels", [
        fe.Job(scale, [a, b, fe.Float32(1.0)]),
        fe.Job(softmax, [x, y], options="--target cpu"),
    ], version="1.0.0")

formats:
  object    NAME.o for each function
  library   libLIBRARY.so
  wheel     LIBRARY-VERSION-py3-none-PLATFORM.whl, which needs only apache-tvm-ffi
Beside objects and libraries are LIBRARY.h (C), LIBRARY.hpp (C++), LIBRARY.pyi (types for Python)
and LIBRARY.json (the signatures); a wheel contains them.

examples:
  ferrule build kernels.py
  ferrule build kernels.py -o dist --format wheel -j 4
  ferrule build kernels.py --target cuda --options "--gpu-arch sm_80,sm_90a"
"""

_INSPECT: Final = """\
FILE is a Python file, whose libraries (and compiled functions at its top level) are compiled, or a
built object, archive or shared library. FILE:NAME is one function of it.

examples:
  ferrule inspect libkernels.so
  ferrule inspect kernels.py:softmax --llvm
  ferrule inspect libkernels.so:softmax --ptx
  ferrule inspect kernels.py --sass
"""

_REPORT: Final = """\
FILE.py is a Python file, whose libraries (and compiled functions at its top level) are compiled;
FILE.py:NAME is one function of it. Each page is one file, NAME.html, which needs nothing else:
source, kernel IR, LLVM IR and machine code side by side, checks, remarks, times and sizes.

examples:
  ferrule report kernels.py:softmax
  ferrule report kernels.py -o pages
"""

_EXPLAIN: Final = """\
Messages of calls have no numbers in their text; the documentation has a number for each kind, and
this finds it: with the cause, the fix and an example. - reads the message from the standard input,
also with a traceback around it.

examples:
  ferrule explain "Mismatched b.shape[0] on argument #1 when calling: ..., expected to match ..."
  ferrule explain CALL22
  python program.py 2>&1 | ferrule explain -
"""

_CHECK: Final = """\
It compares the file's digest, its machine, the features of the CPU, the version of tvm-ffi, and the
libraries and symbols that it needs with this machine. The exit code is 0 if the file can be loaded
here, 1 if not.

examples:
  ferrule check libkernels.so
  ferrule check kernels.o --json
"""

_CACHE: Final = """\
examples:
  ferrule cache info
  ferrule cache clear
"""

_DOCTOR: Final = """\
States: ok; none, which is needed only for what the line says; problem, which is to be solved before
ferrule can work. The exit code is 1 where there is a problem.

examples:
  ferrule doctor
  ferrule doctor --json
"""


def _add_build(commands: Commands) -> None:
    parser = _add(commands, "build", "compile the libraries that a Python file lists", _BUILD)
    parser.add_argument("file", metavar="FILE.py", type=Path, help="the file with the libraries")
    parser.add_argument(
        "-o", "--output", metavar="DIR", type=Path, default=Path("."), help="the folder to write"
    )
    parser.add_argument("--format", choices=_FORMATS, default="library", help="default: library")
    parser.add_argument("--target", choices=_TARGETS, help="instead of the target of each job")
    parser.add_argument(
        "--options", metavar="TEXT", default="", help="options to add to those of each job"
    )
    parser.add_argument(
        "-j", "--jobs", metavar="N", type=_count, default=1, help="compile in N processes"
    )
    parser.add_argument(
        "--keep-paths",
        action="store_true",
        help="keep the paths of source files, for tracebacks; without it the same source gives "
        "the same bytes wherever it lies",
    )
    parser.set_defaults(module="ferrule.commands.build")


def _add_inspect(commands: Commands) -> None:
    parser = _add(commands, "inspect", "show what functions are, and their code", _INSPECT)
    parser.add_argument("file", metavar="FILE[:NAME]", help="a Python file or a built file")
    views = parser.add_mutually_exclusive_group()
    for view, text in VIEWS.items():
        views.add_argument(f"--{view}", dest="view", action="store_const", const=view, help=text)
    parser.set_defaults(module="ferrule.commands.inspect", view="signature")


def _add_report(commands: Commands) -> None:
    parser = _add(commands, "report", "write a page about the compilation of functions", _REPORT)
    parser.add_argument("file", metavar="FILE.py[:NAME]", help="a Python file")
    parser.add_argument(
        "-o", "--output", metavar="DIR", type=Path, default=Path("."), help="the folder to write"
    )
    parser.set_defaults(module="ferrule.commands.report")


def _add_explain(commands: Commands) -> None:
    what = "say what an error of a call means, by its message or number"
    parser = _add(commands, "explain", what, _EXPLAIN)
    parser.add_argument("message", nargs="+", help="the message, a number such as CALL22, or -")
    parser.set_defaults(module="ferrule.commands.explain")


def _add_check(commands: Commands) -> None:
    parser = _add(commands, "check", "check whether this machine can load a built file", _CHECK)
    parser.add_argument("file", metavar="FILE", type=Path, help="an object, archive or library")
    parser.set_defaults(module="ferrule.commands.check")


def _add_cache(commands: Commands) -> None:
    parser = _add(commands, "cache", "show or clear the cache on disk", _CACHE)
    parser.add_argument("action", choices=("info", "clear", "verify", "path"))
    parser.set_defaults(module="ferrule.commands.cache")


def _add_doctor(commands: Commands) -> None:
    parser = _add(commands, "doctor", "show what this machine has of what ferrule can use", _DOCTOR)
    parser.set_defaults(module="ferrule.commands.doctor")


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a number from 1 on, but got {text!r}")
    return int(text)


def parser() -> argparse.ArgumentParser:
    """The parser; what it gives has the module of the command as `module`."""
    whole = _Parser(
        prog="ferrule",
        description="Builds, shows and checks functions that ferrule compiled.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    whole.add_argument("--version", action=_Version)
    commands = whole.add_subparsers(metavar="COMMAND", required=True)
    for add in (
        *(_add_build, _add_inspect, _add_report, _add_explain),
        *(_add_check, _add_cache, _add_doctor),
    ):
        add(commands)
    return whole
