"""The Python package of a library: `__init__.py`, which needs apache-tvm-ffi and nothing else.

The package loads the shared library beside it, and has a Python function with the names, the
defaults and the docstring of each function. The library checks the arguments.
"""

from __future__ import annotations

import inspect
import keyword
import math
from collections.abc import Iterable
from typing import Final

from ferrule import specs
from ferrule.runtime.calls.function import python_signature
from ferrule.runtime.calls.results import Form, form_of
from ferrule.runtime.exporting.headers import Described
from ferrule.runtime.exporting.stubs import default_text
from ferrule.specs._version import __version__

_UNPACK: Final = '''

def {unpack}(value, form):
    """Tuples in place of the Arrays of tvm-ffi that stand for tuples in this form of a result."""
    if form is None or not _builtins.isinstance(value, _tvm_ffi.Array):
        return value
    if _builtins.isinstance(form, _builtins.dict):
        form = form.get(_builtins.len(value))
    if form is None:
        return value
    if _builtins.isinstance(form, _builtins.str):
        form = [form] * _builtins.len(value)
    return _builtins.tuple(_builtins.map({unpack}, value, form))
'''


class _Default:
    """A default that `inspect.Signature` shows as Python reads it."""

    def __init__(self, value: object) -> None:
        calls = isinstance(value, float) and not math.isfinite(value)
        # A function of the package may be named float.
        self.text = f"{'_builtins.' if calls else ''}{default_text(value)}"

    def __repr__(self) -> str:
        return self.text


def version_stub(version: str) -> str:
    """What the stub of a package says of its version."""
    return f"\nfrom typing import Final as _Final\n\n__version__: _Final = {version!r}\n"


def package_text(
    library: str, file: str, summary: str, functions: Iterable[Described], *, version: str = ""
) -> str:
    """The text of `__init__.py`; `file` is the name of the shared library beside it."""
    described = tuple(functions)
    forms = {signature.name: form_of(signature) for signature, _ in described}
    names = sorted(forms)
    taken = {param.name for signature, _ in described for param in signature.arguments}
    unpack = _free("_unpack", taken)
    parts = [
        f'"""{_quoted(summary or f"The functions of the library {library}.")}\n\n'
        f"Made by ferrule {__version__}: the functions check all of their arguments.\n"
        '"""\n\n'
        "import builtins as _builtins\n"
        "from pathlib import Path as _Path\n\n"
        "import tvm_ffi as _tvm_ffi\n\n"
        f"_module = _tvm_ffi.load_module(_builtins.str(_Path(__file__).with_name({file!r})))\n\n"
        f"__all__ = {names!r}\n",
        f"__version__ = {version!r}\n" if version else "",
        _UNPACK.format(unpack=unpack) if any(form is not None for form in forms.values()) else "",
        *(_function(*each, forms[each[0].name], unpack) for each in described),
    ]
    return "".join(parts)


def _function(signature: specs.Signature, doc: str | None, form: Form, unpack: str) -> str:
    """The function in Python.  ValueError for a name or default that Python cannot have."""
    if keyword.iskeyword(signature.name):
        raise ValueError(
            f"{signature.name!r} is a word of Python: no function of a package can have this name"
        )
    parameters = [
        _plain(signature, parameter)
        for parameter in python_signature(signature).parameters.values()
    ]
    taken = {parameter.name for parameter in parameters}
    held = _free(f"_{signature.name}", taken)
    call = f"{held}({', '.join(parameter.name for parameter in parameters)})"
    if form is not None:
        call = f"{unpack}({call}, {form!r})"
    said = f"{signature}\n\n{doc}" if doc else str(signature)
    quoted = "\n".join(f"    {line}".rstrip() for line in f'"""{_quoted(said)}\n"""'.splitlines())
    shown = inspect.Signature(parameters)
    return (
        f"\n\n{held} = _module.get_function({signature.name!r})\n\n\n"
        f"def {signature.name}{shown}:\n{quoted}\n    return {call}\n"
    )


def _plain(signature: specs.Signature, parameter: inspect.Parameter) -> inspect.Parameter:
    """The parameter without its annotation, its default as text.

    ValueError for a default that has no literal: the package could not give it to the function.
    """
    if parameter.default is inspect.Parameter.empty:
        return parameter.replace(annotation=inspect.Parameter.empty)
    default = _Default(parameter.default)
    if "..." in default.text and not isinstance(parameter.default, str):
        raise ValueError(
            f"the default of {parameter.name} of {signature.name} is {parameter.default!r}, which "
            f"no Python literal represents: a package without ferrule cannot have it"
        )
    return parameter.replace(annotation=inspect.Parameter.empty, default=default)


def _free(name: str, taken: set[str]) -> str:
    """A name of the module that no parameter hides."""
    while name in taken:
        name += "_"
    return name


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"').replace("\0", "\\0")
