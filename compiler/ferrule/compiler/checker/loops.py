"""Loops of a program over the elements of a container."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from ferrule.compiler.checker.code import Code
from ferrule.compiler.checker.format import Op
from ferrule.compiler.checker.nodes import Node
from ferrule.specs.params import AnyValue, Dict, Elements, Pairs

Visit: TypeAlias = "Callable[[Code, Node], None]"


def over_elements(code: Code, node: Node, visit: Visit) -> None:
    """Run the rows that `visit` adds for each element; no loop if it adds none."""
    children = [child for child in node.children if not isinstance(child.param, AnyValue)]
    match node.param:
        case Elements() if children:
            _over_sequence(code, node, children[0], visit)
        case Pairs() if children:
            _over_pairs(code, node, children, visit)


def _over_sequence(code: Code, node: Node, child: Node, visit: Visit) -> None:
    level = node.loops
    code.row(Op.RESET, kind=level)
    head = code.head()
    code.at(node.at)
    end = code.row(Op.EACH, kind=level)
    visit(code, child)
    code.row(Op.NEXT, kind=level, a=head)
    code.here(end)


def _over_pairs(code: Code, node: Node, children: list[Node], visit: Visit) -> None:
    level = node.loops
    code.at(node.at)
    code.row(Op.PAIRS, kind=level, axis=int(isinstance(node.param, Dict)))
    head = code.head()
    code.at(node.at)
    end = code.row(Op.PAIR, kind=level)
    for child in children:
        visit(code, child)
    code.row(Op.NEXT, kind=level, a=head)
    code.here(end)
