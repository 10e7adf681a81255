"""README and docs: their Python runs, their kernels exist, their links have targets."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [page for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))) if page.exists()]
TYPES = "f16|f32|f64|bf16f32|f16f32|i8i32|u8i8i32"
NAME = re.compile(rf"\b(?:generic|sse|avx\w*)_(?:{TYPES})_(?:outer|inner|gemv)_\d+x\d+\b")

BLOCKS = [
    pytest.param(code, id=f"{page.stem}-{i}")
    for page in PAGES
    for i, code in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL))
]


EXTRAS = ("dask", "jax", "numba", "pandas", "torch", "xarray")
"""Packages that a page may use without every installation of the tests having them."""


def numbers(text):
    return [float(x) for x in re.findall(r"-?\d+\.\d+", text)]


@pytest.mark.parametrize("code", BLOCKS)
def test_python_of_the_pages_runs(code, capsys):
    for package in EXTRAS:
        if re.search(rf"^import .*\b{package}\b", code, re.MULTILINE):
            pytest.importorskip(package)
    exec(compile(code, "page", "exec"), {})
    out = capsys.readouterr().out
    promised = [line.partition("# ")[2] for line in code.splitlines() if line.startswith("print") and "# [" in line]
    for line in promised:  # print(...)  # what it prints, up to the rounding of another kernel
        assert numbers(out) == pytest.approx(numbers(line), abs=1e-6)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_kernels_named_exist(page):
    table = (ROOT / "cpu_kernels" / "kernels.inc").read_text()
    example = {"avx2_f32_outer_12x8", "generic_f32_outer_4x5"} if page.stem == "adding_a_kernel" else set()
    missing = {
        name for name in NAME.findall(page.read_text()) if not re.search(rf"\b{name}, \.target", table)
    } - example
    assert not missing


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_links_have_targets(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        assert target.startswith("https://") or (page.parent / target).exists(), target
