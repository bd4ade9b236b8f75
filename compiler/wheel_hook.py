"""A build of a wheel, or an editable install, compiles support code into files of the package.

See `ferrule.compiler.support.shipped`.  Where what that needs is not installed, which isolated
builds cannot lack, the package has no such files and its processes compile the code themselves.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PLACE = "ferrule/compiler/support/shipped"


class SupportHook(BuildHookInterface):  # type: ignore[type-arg]
    """The hook that pyproject.toml names."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the files: into the checkout for an editable install, else into the package."""
        if version == "editable":
            self._write()
            return
        self._folder = tempfile.TemporaryDirectory()
        if self._write(self._folder.name, "--package"):
            build_data["force_include"][self._folder.name] = PLACE

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """The files are in the package now."""
        if version != "editable":
            self._folder.cleanup()

    def _write(self, *arguments: str) -> bool:
        roots = [str(Path(self.root, each)) for each in ("compiler", "runtime", "specs")]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*roots, *sys.path])}
        # PyTorch, which tvm_ffi would import, is not needed for this.
        start = "import runpy, sys; sys.modules['torch'] = None; sys.argv[0] = ''; "
        start += "runpy.run_module('ferrule.compiler.support.ship', run_name='__main__')"
        done = subprocess.run(
            [sys.executable, "-c", start, *arguments],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            self.app.display_warning(f"no support code is shipped:\n{done.stderr[-2000:]}")
        return done.returncode == 0
