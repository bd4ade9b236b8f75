"""How notebooks show a compiled function: its signature, what a call checks, where it is from."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from ferrule.specs.html.elements import fragment
from ferrule.specs.html.signatures import signature_body

if TYPE_CHECKING:
    from ferrule.runtime.calls.function import Function


def function_html(function: Function, doc: str | None) -> str:
    """A function as a part of a page; one of several candidates has a table for each of them."""
    body = signature_body(function.signature)
    if doc:
        body += f"<p>{escape(doc)}</p>\n"
    return fragment(f'{body}<p class="faint">{escape(_about(function))}</p>\n')


def _about(function: Function) -> str:
    """Where its code is from, and what can be asked of it."""
    if function.origin == "loaded":
        return "loaded from machine code"
    return f"{function.origin}; report() makes a page of source and machine code"
