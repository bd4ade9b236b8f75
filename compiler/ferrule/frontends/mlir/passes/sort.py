"""A stable sort of tensors as the text of MLIR functions: runs are merged, n log n comparisons.

`@ferrule_less_<number>` compares: its arguments are two elements of the first tensor, then two of
the second, and so on, as 0-d tensors.
"""

from __future__ import annotations

from collections.abc import Sequence


def sort_text(number: int, shape: Sequence[int], elements: Sequence[str], axis: int) -> str:
    """`@ferrule_sort_<number>`, which sorts tensors of this shape, with these types of elements,
    along an axis by what the first orders, second, and so on."""
    return _line(number, shape[axis], elements) + _whole(number, shape, elements, axis)


def listed(form: str, elements: Sequence[str]) -> str:
    """The form for each tensor: `{i}` is its number, `{e}` its type of elements."""
    return ", ".join(form.format(i=i, e=element) for i, element in enumerate(elements))


def lines(form: str, elements: Sequence[str]) -> str:
    """The form for each tensor, each in a line of its own."""
    return "\n".join(form.format(i=i, e=element) for i, element in enumerate(elements))


def _line(number: int, size: int, elements: Sequence[str]) -> str:
    """The function that sorts one line: a pass merges each two neighbouring runs of `%run`
    elements."""
    types = listed(f"tensor<{size}x{{e}}>", elements)
    return f"""
func.func private @ferrule_sort_line_{number}({listed(f"%x{{i}}: tensor<{size}x{{e}}>", elements)})
    -> ({types}) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant {size} : index
  %true = arith.constant true
  %false = arith.constant false
  %r:{len(elements) + 1} = scf.while (%run = %c1, {listed("%a{i} = %x{i}", elements)})
      : (index, {types}) -> (index, {types}) {{
    %more = arith.cmpi ult, %run, %n : index
    scf.condition(%more) %run, {listed("%a{i}", elements)} : index, {types}
  }} do {{
  ^bb0(%run: index, {listed(f"%a{{i}}: tensor<{size}x{{e}}>", elements)}):
    %two = arith.addi %run, %run : index
{lines(f"    %b{{i}} = tensor.empty() : tensor<{size}x{{e}}>", elements)}
{_merged(number, size, elements)}    scf.yield %two, {results("d", 0, elements)} : index, {types}
  }}
  return {results("r", 1, elements)} : {types}
}}
"""


def _merged(number: int, size: int, elements: Sequence[str]) -> str:
    """The loop of a pass, which merges two runs in each iteration."""
    types = listed(f"tensor<{size}x{{e}}>", elements)
    scalars = listed("tensor<{e}>, tensor<{e}>", elements)
    return f"""\
    %d:{len(elements)} = scf.for %low = %c0 to %n step %two
        iter_args({listed("%e{i} = %b{i}", elements)}) -> ({types}) {{
      %to_mid = arith.addi %low, %run : index
      %mid = arith.minui %to_mid, %n : index
      %to_end = arith.addi %low, %two : index
      %end = arith.minui %to_end, %n : index
      %m:{len(elements) + 2} = scf.for %k = %low to %end step %c1
          iter_args(%i = %low, %j = %mid, {listed("%f{i} = %e{i}", elements)})
          -> (index, index, {types}) {{
        %has_left = arith.cmpi ult, %i, %mid : index
        %has_right = arith.cmpi ult, %j, %end : index
        %both = arith.andi %has_left, %has_right : i1
        %take = scf.if %both -> i1 {{
{lines(f"          %l{{i}} = tensor.extract %a{{i}}[%i] : tensor<{size}x{{e}}>", elements)}
{lines(f"          %g{{i}} = tensor.extract %a{{i}}[%j] : tensor<{size}x{{e}}>", elements)}
{lines("          %lt{i} = tensor.from_elements %l{i} : tensor<{e}>", elements)}
{lines("          %gt{i} = tensor.from_elements %g{i} : tensor<{e}>", elements)}
          %less = func.call @ferrule_less_{number}({listed("%gt{i}, %lt{i}", elements)})
              : ({scalars}) -> tensor<i1>
          %flag = tensor.extract %less[] : tensor<i1>
          scf.yield %flag : i1
        }} else {{
          scf.yield %has_right : i1
        }}
        %from = arith.select %take, %j, %i : index
        %next_i = arith.addi %i, %c1 : index
        %next_j = arith.addi %j, %c1 : index
        %i2 = arith.select %take, %i, %next_i : index
        %j2 = arith.select %take, %next_j, %j : index
{lines(f"        %v{{i}} = tensor.extract %a{{i}}[%from] : tensor<{size}x{{e}}>", elements)}
{lines(f"%h{{i}} = tensor.insert %v{{i}} into %f{{i}}[%k] : tensor<{size}x{{e}}>", elements)}
        scf.yield %i2, %j2, {listed("%h{i}", elements)} : index, index, {types}
      }}
      scf.yield {", ".join(f"%m#{i + 2}" for i in range(len(elements)))} : {types}
    }}
"""


def results(name: str, first: int, elements: Sequence[str]) -> str:
    """The results of an operation from one on; a single result has no number."""
    if len(elements) + first == 1:
        return f"%{name}"
    return ", ".join(f"%{name}#{first + i}" for i in range(len(elements)))


def _whole(number: int, shape: Sequence[int], elements: Sequence[str], axis: int) -> str:
    """The function that sorts each line along the axis."""
    whole, size = "x".join(map(str, shape)), shape[axis]
    types = listed(f"tensor<{whole}x{{e}}>", elements)
    line = f"tensor<{size}x{{e}}>"
    others = [each for each in range(len(shape)) if each != axis]
    places = ", ".join("0" if each == axis else f"%o{each}" for each in range(len(shape)))
    sizes = ", ".join(str(size) if each == axis else "1" for each in range(len(shape)))
    slices = f"[{places}] [{sizes}] [{', '.join('1' for _ in shape)}]"
    opened, closed, last = "", "", "%x{i}"
    for each in others:
        opened += (
            f"  %l{each}:{len(elements)} = scf.for %o{each} = %c0 to %s{each} step %c1 iter_args("
            + listed(f"%t{each}_{{i}} = {last}", elements)
            + f") -> ({types}) {{\n"
        )
        last = f"%t{each}_{{i}}"
    taken = lines(
        f"  %p{{i}} = tensor.extract_slice {last}{slices} : tensor<{whole}x{{e}}> to {line}",
        elements,
    )
    given = lines(
        f"  %w{{i}} = tensor.insert_slice {one('q', elements)} into {last}{slices} "
        f": {line} into tensor<{whole}x{{e}}>",
        elements,
    )
    found = listed("%w{i}", elements)
    for each in reversed(others):
        closed += f"  scf.yield {found} : {types}\n  }}\n"
        found = results(f"l{each}", 0, elements)
    numbers = "\n".join(f"  %s{each} = arith.constant {shape[each]} : index" for each in others)
    return f"""
func.func private @ferrule_sort_{number}({listed(f"%x{{i}}: tensor<{whole}x{{e}}>", elements)})
    -> ({types}) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
{numbers}
{opened}{taken}
  %q:{len(elements)} = func.call @ferrule_sort_line_{number}({listed("%p{i}", elements)})
      : ({listed(line, elements)}) -> ({listed(line, elements)})
{given}
{closed}  return {found} : {types}
}}
"""


def one(name: str, elements: Sequence[str]) -> str:
    """The form of one result of an operation."""
    return f"%{name}" if len(elements) == 1 else f"%{name}#{{i}}"
