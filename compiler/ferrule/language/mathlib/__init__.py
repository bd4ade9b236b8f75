"""Mathematical functions in the kernel IR itself, the same for every target.

`expand_maths` replaces each op that is not a plain instruction by ops that are, so all targets have
the same results and none needs a library.  The expansions have no tables, and no branches except a
reduction of huge angles and the loop of `fmod`, so loops over them are vectorised. float16,
bfloat16 and tfloat32 are computed in float32 and rounded once more.

A file is a family of functions; its docstring names the method.  `formulas` and `pairs` are the
notation for them; `tests/maths/fit.py` generates `polynomials` and `constants`.  `docs/maths.md`
documents the functions and their measured precision.
"""

from ferrule.language.mathlib.expand import Keep, expand_maths

__all__ = ["Keep", "expand_maths"]
