"""A scatter of tensors as the text of an MLIR function: loops over the updates.

`@ferrule_update_<number>` combines: its arguments are the elements that are there, one of each
tensor, then the updates, as 0-d tensors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ferrule.frontends.mlir.passes.sort import lines, listed, one, results
from ferrule.specs.deferred import dataclass


@dataclass(frozen=True, slots=True)
class Scatter:
    """What a `stablehlo.scatter` does; the dims are named as in its specification.

    `shape`, `places` and `updates` are the shapes of the tensors, of the indices and of the
    updates; `elements` and `index` are types of elements.
    """

    shape: tuple[int, ...]
    places: tuple[int, ...]
    updates: tuple[int, ...]
    elements: tuple[str, ...]
    index: str
    update_window_dims: tuple[int, ...]
    inserted_window_dims: tuple[int, ...]
    input_batching_dims: tuple[int, ...]
    scatter_indices_batching_dims: tuple[int, ...]
    scatter_dims_to_operand_dims: tuple[int, ...]
    index_vector_dim: int

    @property
    def scatter_dims(self) -> tuple[int, ...]:
        """The dims of the updates along which there is an index for each."""
        every = range(len(self.updates))
        return tuple(each for each in every if each not in self.update_window_dims)

    @property
    def window(self) -> dict[int, int]:
        """The dims of a tensor that a window has, and the dims of the updates for them."""
        gone = (*self.inserted_window_dims, *self.input_batching_dims)
        dims = [each for each in range(len(self.shape)) if each not in gone]
        return dict(zip(dims, self.update_window_dims, strict=True))


def scatter_text(number: int, scatter: Scatter) -> str:
    """`@ferrule_scatter_<number>`, of the tensors, the indices and the updates.

    A window that does not fit into the tensor is left out as a whole, as XLA does it.
    """
    tensor, update = _type(scatter.shape), _type(scatter.updates)
    types = listed(tensor, scatter.elements)
    inner, found = _windows(number, scatter, types)
    count = len(scatter.elements)
    body = f"""{chr(10).join(_starts(scatter))}
  %placed:{count} = scf.if %fits -> ({types}) {{
{inner}    scf.yield {found} : {types}
  }} else {{
    scf.yield {listed(_last(scatter.scatter_dims), scatter.elements)} : {types}
  }}
"""
    found = results("placed", 0, scatter.elements)
    whole, end = _nested(scatter, scatter.scatter_dims, "%x{i}", body, (found, types))
    return f"""
func.func private @ferrule_scatter_{number}({listed(f"%x{{i}}: {tensor}", scatter.elements)},
    %at: {_type(scatter.places).format(e=scatter.index)},
    {listed(f"%u{{i}}: {update}", scatter.elements)}) -> ({types}) {{
{chr(10).join(_constants(scatter))}
{whole}  return {end} : {types}
}}
"""


def _type(shape: Sequence[int]) -> str:
    return f"tensor<{''.join(f'{size}x' for size in shape)}{{e}}>"


def _constants(scatter: Scatter) -> Iterator[str]:
    sizes = (*scatter.shape, *scatter.places, *scatter.updates)
    for each in sorted({0, 1, *sizes, *range(len(scatter.scatter_dims_to_operand_dims))}):
        yield f"  %c{each} = arith.constant {each} : index"
    yield "  %true = arith.constant true"


def _last(dims: Sequence[int]) -> str:
    """The form of the tensors inside of loops over dims of the updates."""
    return f"%t{dims[-1]}_{{i}}" if dims else "%x{i}"


def _nested(
    scatter: Scatter, dims: Sequence[int], first: str, body: str, inside: tuple[str, str]
) -> tuple[str, str]:
    """Loops over dims of the updates around a body, and the values behind them; `first` is the form
    of the tensors before, `inside` are those that the body gives, and their types."""
    found, types = inside
    count = len(scatter.elements)
    opened, closed, last = "", "", first
    for each in dims:
        opened += (
            f"  %l{each}:{count} = scf.for %k{each} = %c0 to %c{scatter.updates[each]} step %c1 "
            f"iter_args({listed(f'%t{each}_{{i}} = {last}', scatter.elements)}) -> ({types}) {{\n"
        )
        last = f"%t{each}_{{i}}"
    for each in reversed(dims):
        closed += f"  scf.yield {found} : {types}\n  }}\n"
        found = results(f"l{each}", 0, scatter.elements)
    return opened + body + closed, found


def _starts(scatter: Scatter) -> Iterator[str]:
    """Where a window begins, `%start<dim>`, and whether it fits, `%fits`."""
    flag = "%true"
    places = [f"%k{each}" for each in scatter.scatter_dims]
    has_vector = scatter.index_vector_dim < len(scatter.places)
    kind = _type(scatter.places).format(e=scatter.index)
    for component, dim in enumerate(scatter.scatter_dims_to_operand_dims):
        at = list(places)
        if has_vector:
            at.insert(scatter.index_vector_dim, f"%c{component}")
        yield f"    %i{dim} = tensor.extract %at[{', '.join(at)}] : {kind}"
        yield from _as_index(f"%start{dim}", f"%i{dim}", scatter.index)
        size = scatter.updates[scatter.window[dim]] if dim in scatter.window else 1
        yield f"    %most{dim} = arith.constant {scatter.shape[dim] - size} : index"
        yield f"    %in{dim} = arith.cmpi ule, %start{dim}, %most{dim} : index"
        yield f"    %all{dim} = arith.andi {flag}, %in{dim} : i1"
        flag = f"%all{dim}"
    for dim, where in zip(
        scatter.input_batching_dims, scatter.scatter_indices_batching_dims, strict=True
    ):
        behind = where - (where > scatter.index_vector_dim)
        yield f"    %start{dim} = arith.addi {places[behind]}, %c0 : index"
    yield f"    %fits = arith.andi {flag}, %true : i1"


def _as_index(name: str, value: str, kind: str) -> Iterator[str]:
    """An integer as an index; a negative one is larger than each size without signs."""
    if not kind.startswith("ui"):
        yield f"    {name} = arith.index_cast {value} : {kind} to index"
        return
    plain = kind.removeprefix("u")
    yield f"    {name}p = builtin.unrealized_conversion_cast {value} : {kind} to {plain}"
    yield f"    {name} = arith.index_castui {name}p : {plain} to index"


def _windows(number: int, scatter: Scatter, types: str) -> tuple[str, str]:
    """The loops over a window, and the values behind them."""
    elements, coordinates, moved = scatter.elements, list[str](), list[str]()
    starts = {*scatter.scatter_dims_to_operand_dims, *scatter.input_batching_dims}
    for dim in range(len(scatter.shape)):
        here = f"%start{dim}" if dim in starts else "%c0"
        if dim in scatter.window:
            inside = f"%k{scatter.window[dim]}"
            moved.append(f"    %p{dim} = arith.addi {here}, {inside} : index")
            here = f"%p{dim}"
        coordinates.append(here)
    at = ", ".join(coordinates)
    given = ", ".join(f"%k{each}" for each in range(len(scatter.updates)))
    last = _last((*scatter.scatter_dims, *scatter.update_window_dims))
    tensor, update = _type(scatter.shape), _type(scatter.updates)
    scalars = listed("tensor<{e}>", elements)
    body = "\n".join(
        [
            *moved,
            lines(f"    %o{{i}} = tensor.extract {last}[{at}] : {tensor}", elements),
            lines(f"    %n{{i}} = tensor.extract %u{{i}}[{given}] : {update}", elements),
            lines("    %ot{i} = tensor.from_elements %o{i} : tensor<{e}>", elements),
            lines("    %nt{i} = tensor.from_elements %n{i} : tensor<{e}>", elements),
            f"    %r:{len(elements)} = func.call @ferrule_update_{number}("
            f"{listed('%ot{i}', elements)}, {listed('%nt{i}', elements)}) "
            f": ({scalars}, {scalars}) -> ({scalars})",
            lines(f"    %v{{i}} = tensor.extract {one('r', elements)}[] : tensor<{{e}}>", elements),
            lines(f"    %z{{i}} = tensor.insert %v{{i}} into {last}[{at}] : {tensor}", elements),
            "",
        ]
    )
    first, found = _last(scatter.scatter_dims), listed("%z{i}", elements)
    return _nested(scatter, scatter.update_window_dims, first, body, (found, types))
