"""Without Triton the frontend can be imported, and says what to install where it is used."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ferrule.frontends import triton as frontend


def test_importing_the_frontend_imports_no_triton() -> None:
    # Without PyTorch, which tvm_ffi imports where there is one, for two seconds.
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "import ferrule.frontends.triton; print('triton' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_the_extra_to_install_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "triton", None)
    with pytest.raises(ImportError, match=r"pip install 'ferrule\[triton\]'"):
        frontend.compile(lambda: None, grid=1, target="sm_90a")


def test_the_examples_say_what_to_install() -> None:
    folder = Path(__file__).parents[2] / "examples" / "triton"
    code = (
        "import pathlib, runpy, sys\n"
        "sys.modules['triton'] = None\n"
        "for path in sorted(pathlib.Path(sys.argv[1]).glob('*.py')):\n"
        "    try: runpy.run_path(str(path))\n"
        "    except SystemExit as error: print(error)\n"
    )
    command = [sys.executable, "-c", code, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    wanted = "this example needs Triton: pip install 'ferrule[triton]'"
    assert done.stdout.splitlines() == [wanted] * len(list(folder.glob("*.py")))
