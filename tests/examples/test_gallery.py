"""The gallery: its index, what its tutorials promise, and those for PyTorch and JAX run."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path

import pytest

GALLERY = Path(__file__).resolve().parents[2] / "docs/gallery"
TUTORIALS = sorted(each.stem for each in GALLERY.glob("*.py") if each.stem != "plots")


@pytest.mark.needs_torch
@pytest.mark.parametrize(("name", "package"), [("rmsnorm_pytorch", "torch"), ("jax_call", "jax")])
def test_runs(name: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip(package, reason=f"{package} is not installed")
    monkeypatch.setattr(sys, "path", [str(GALLERY), *sys.path])
    runpy.run_path(str(GALLERY / f"{name}.py"), run_name="__main__")


def test_the_index_has_each_tutorial() -> None:
    text = (GALLERY / "index.md").read_text(encoding="utf-8")
    assert len(TUTORIALS) == 12
    assert sorted(re.findall(r"^\| \[.*\]\((\w+)\.py\)", text, re.M)) == TUTORIALS
    assert sorted(text.split(":hidden:")[1].strip("`\n ").split()) == TUTORIALS


@pytest.mark.parametrize("name", TUTORIALS)
def test_says_how_to_run_it_makes_pictures_and_leads_on(name: str) -> None:
    text = (GALLERY / f"{name}.py").read_text(encoding="utf-8")
    assert text.startswith("# %% [markdown]\n# # ")
    assert f"**Run it**: `python docs/gallery/{name}.py`" in text
    assert re.search(r"^(plots\.(grid|times|timeline|curves|picture)|fe\.draw)\(", text, re.M)
    links = re.findall(r"\]\(([^)#:]+)[)#]", text)
    assert links and "**Next**" in text
    assert all((GALLERY / link).exists() for link in links)
