"""The table of a library's functions, as JSON: what is in it, for programs and people."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from ferrule import specs
from ferrule.runtime.binaries.metadata import Metadata
from ferrule.runtime.exporting.headers import Described
from ferrule.specs._version import __version__
from ferrule.specs.literals import literal_text

Row = Mapping[str, Any]


def table_text(library: str, version: str, functions: Iterable[tuple[Described, Metadata]]) -> str:
    """The table: the library, and of each function symbol, signature, parameters and target."""
    rows = [row(described, metadata) for described, metadata in functions]
    table = {"library": library, "version": version, "ferrule": __version__, "functions": rows}
    return json.dumps(table, indent=2, ensure_ascii=False) + "\n"


def row(described: Described, metadata: Metadata) -> Row:
    """One function."""
    signature, doc = described
    return {
        "name": signature.name,
        "symbol": f"__tvm_ffi_{signature.name}",
        "signature": signature.text(),
        "doc": doc,
        "parameters": [_parameter(signature, param) for param in signature.arguments],
        "result": None if signature.result is None else signature.kind_of_result(full=True),
        "target": {
            "triple": metadata.triple,
            "cpu": metadata.cpu,
            "features": list(metadata.features),
            "gpus": [{"arch": image.arch, "kind": image.kind} for image in metadata.images],
        },
        "tvm_ffi": ".".join(map(str, metadata.abi)),
    }


def _parameter(signature: specs.Signature, param: specs.Param) -> Row:
    default = param.default
    given = {} if default is specs.REQUIRED else {"default": literal_text(default)}
    return {"name": param.name, "kind": signature.kind(param, full=True), **given}
