"""Mathematical functions in the kernel IR itself, for every target alike.

`expand_maths` replaces each op that is no plain instruction by ops that are, so all targets give
the same result and none needs a library.  The expansions have no branches, except a reduction of
huge angles and the loop of `fmod`, and no tables: loops over them vectorise.  float16, bfloat16 and
tfloat32 are computed in float32 and rounded once more.

A file is a family of functions; its docstring says by which method.  `formulas` and `pairs` are
what they are written in; `polynomials` and `constants` are written by `tests/maths/fit.py`.  What
the functions do and how precise they were measured to be is in `docs/maths.md`.
"""

from ferrule.language.mathlib.expand import Keep, expand_maths

__all__ = ["Keep", "expand_maths"]
