"""Signatures in notebooks: the parameters, and what a call checks of each."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from ferrule.specs.html.checks import checks_of
from ferrule.specs.html.elements import code, fragment, lines, table

if TYPE_CHECKING:
    from ferrule.specs.signature import Signature


def signature_html(signature: Signature) -> str:
    """A signature as a part of a page."""
    return fragment(signature_body(signature))


def signature_body(signature: Signature) -> str:
    """The same without a style: for what shows more than the signature."""
    return "".join(map(_candidate, signature.ways))


def _candidate(signature: Signature) -> str:
    rows = [(code(each.param), lines(each.checks)) for each in checks_of(signature)]
    head = f"<p><code>{escape(str(signature))}</code></p>\n"
    return head + table(("parameter", "what a call checks"), rows)
