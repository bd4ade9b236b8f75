"""Optimises the code of a body with LLVM's remarks on, in a process of its own.

LLVM switches remarks on for a whole process, and writes them to standard error.  Run as a program,
`python child.py`, with a request on standard input: pickled, the `sys.path` of the process that
asks, and then the arguments of `assemble.optimised_alone`.  Standard output is 1 if loops become
vectors, else 0.
"""

from __future__ import annotations

import pickle
import sys

PASSES = "loop-vectorize|slp-vectorizer|loop-unroll|loop-idiom|loop-delete"
"""The passes whose remarks say what became of a loop."""

_REASONS = "loop-vectorize|loop-accesses"
"""The passes that say why not."""


def main() -> None:
    """Answer the request."""
    sys.path[:] = pickle.load(sys.stdin.buffer)
    # tvm-ffi imports PyTorch where it is, which takes longer than all of this.
    sys.modules["torch"] = None  # type: ignore[assignment]
    import llvmlite.binding as llvm

    from ferrule.compiler.assemble import optimised_alone

    given = pickle.load(sys.stdin.buffer)
    for kind, passes in (("", PASSES), ("-missed", PASSES), ("-analysis", _REASONS)):
        llvm.set_option("", f"-pass-remarks{kind}={passes}")
    print(int(optimised_alone(*given)))


if __name__ == "__main__":
    main()
