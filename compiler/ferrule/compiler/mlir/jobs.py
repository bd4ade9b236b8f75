"""The requests to MLIR, each in a separate process.

    jobs.verified(text)                       # the module as MLIR prints it
    jobs.passed(text, "builtin.module(cse)")  # the same behind passes
    jobs.translated(text, pipeline)           # LLVM IR, as llvmlite reads it

All raise CompileError with MLIR's diagnostics and the place in the text, and ImportError if no
package has MLIR's bindings.
"""

from __future__ import annotations

from ferrule.compiler.mlir.child import in_child
from ferrule.compiler.mlir.session import Session


def verified(text: str) -> str:
    """The verified module of a text, as MLIR prints it."""
    return in_child(_passed, text, None)


def passed(text: str, pipeline: str) -> str:
    """The module after passes; `pipeline` is like `builtin.module(canonicalize,cse)`."""
    return in_child(_passed, text, pipeline)


def translated(text: str, pipeline: str) -> str:
    """The LLVM IR of the module after passes, which lower it to the dialect `llvm`."""
    return in_child(_translated, text, pipeline)


def package() -> str:
    """The name of the package with the bindings."""
    return in_child(_package)


def _passed(session: Session, text: str, pipeline: str | None) -> str:
    module = session.parse(text)
    if pipeline is not None:
        session.run(module, pipeline)
    return str(module)


def _translated(session: Session, text: str, pipeline: str) -> str:
    module = session.parse(text)
    session.run(module, pipeline)
    return session.translate(module)


def _package(session: Session) -> str:
    return str(session.ir.__name__).rpartition(".")[0]
