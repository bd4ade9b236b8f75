"""Optional packages: imported when a frontend is used, never when it is imported."""

from __future__ import annotations

import importlib
from typing import Any


def load(module: str, frontend: str, extra: str | None = None) -> Any:
    """A module of an optional package.

    Raises an ImportError that names the extra to install, by default that of the frontend's name.
    """
    try:
        found = importlib.import_module(module)
        if getattr(found, "__file__", None) is None:
            # Any folder of that name on the path can be imported as a namespace package.
            raise ImportError(f"{found!r} is a folder")
        return found
    except ImportError as error:
        raise ImportError(
            f"fe.frontends.{frontend} needs {module}, which cannot be imported here ({error}): "
            f"pip install 'ferrule[{extra or frontend}]'",
            name=module,
        ) from error
