# %% [markdown]
# # Embed your DSL
#
# You have a language for kernels that writes LLVM IR. ferrule adds the rest: arguments of NumPy,
# PyTorch and JAX, every check with its message, the allocated result, and files for C. Here is a
# language of formulas of vectors, in thirty lines, from its parser to a function.
#
# **Run it**: `python docs/gallery/embed_dsl.py`

# %%
import ast

import numpy as np
import plots

from ferrule import compiler, specs
from ferrule.compiler.conventions import CFunction, HostCode

# %% [markdown]
# ## The language
#
# `a * x + y`, with `+ - * /`, names and numbers. `write` walks the tree that Python's parser makes,
# and writes an instruction for each node; a register for each name holds the element at hand.

# %%
INSTRUCTIONS = {ast.Add: "fadd", ast.Sub: "fsub", ast.Mult: "fmul", ast.Div: "fdiv"}


def write(node: ast.expr, lines: list[str]) -> str:
    """The register or number with the value of a node."""
    if isinstance(node, ast.Name):
        return f"%{node.id}.value"
    if isinstance(node, ast.Constant):
        return repr(float(np.float32(node.value)))
    assert isinstance(node, ast.BinOp)
    left, right = write(node.left, lines), write(node.right, lines)
    result = f"%v{len(lines)}"
    lines.append(f"  {result} = {INSTRUCTIONS[type(node.op)]} float {left}, {right}")
    return result


def llvm(formula: str, names: list[str]) -> str:
    """The loop over all elements, as LLVM IR."""
    lines: list[str] = []
    for name in names:
        lines.append(f"  %{name}.at = getelementptr float, ptr %{name}, i64 %i")
        lines.append(f"  %{name}.value = load float, ptr %{name}.at")
    result = write(ast.parse(formula, mode="eval").body, lines)
    parameters = "".join(f", ptr %{name}" for name in names)
    body = "\n".join(lines)
    return f"""\
define void @formula(ptr %out, i64 %n{parameters}) {{
start:
  br label %next
next:
  %i = phi i64 [0, %start], [%after, %each]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %each, label %end
each:
{body}
  %at = getelementptr float, ptr %out, i64 %i
  store float {result}, ptr %at
  %after = add i64 %i, 1
  br label %next
end:
  ret void
}}
"""


print(llvm("a * x + y", ["a", "x", "y"]))

# %% [markdown]
# ## The function
#
# A *signature* describes what callers give, a *calling convention* how the code is called: a C
# function that gets the address of the result, the size, and the addresses of the parameters.
# `results` is what the function allocates and returns.


# %%
def build(formula: str):
    """A function of vectors, one for each name in the formula."""
    tree = ast.parse(formula, mode="eval")
    names = sorted({node.id for node in ast.walk(tree) if isinstance(node, ast.Name)})
    n = specs.sym_int64()
    out, *params = [specs.Tensor(name, (n,), "float32") for name in ("out", *names)]
    call = CFunction(
        "formula",
        [out.data, n, *(each.data for each in params)],
        code=HostCode.from_llvm(llvm(formula, names)),
    )
    signature = specs.Signature("formula", params)
    return compiler.build(signature, call, results=[out], doc=formula)


saxpy = build("a * x + y")
saxpy

# %%
x = np.arange(4, dtype=np.float32)
print(np.from_dlpack(saxpy(x, x, np.ones(4, np.float32))))

# %% [markdown]
# ferrule has written the checks of the arguments:

# %%
try:
    saxpy(x, x, x.astype(np.float64))
except ValueError as error:
    print(error)

# %% [markdown]
# ## What the wrapper costs
#
# A call checks three arrays and allocates the result. NumPy needs two operations for the same.

# %%
given = [np.ones(1000, np.float32) for _ in range(3)]
samples = plots.measured(
    {
        "the formula, 1000 elements": lambda: saxpy(*given),
        "NumPy": lambda: given[0] * given[1] + given[2],
    }
)
plots.times(samples, "a * x + y of 1000 elements")

# %% [markdown]
# **Next**: [embed ferrule in your DSL](../embedding.md), with GPUs, export and conventions of your
# own; `examples/tiny_dsl.py`.
