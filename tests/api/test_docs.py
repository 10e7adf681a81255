"""README and docs: their Python runs, their kernels exist, their links have targets."""

import json
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


def test_the_mutation_campaign_is_the_recorded_one():
    """Its counts by area, and each slip that survives with its reason."""
    page = (ROOT / "docs/reliability.md").read_text()
    areas = json.loads((ROOT / "benchmarks/results/mutation.json").read_text())["areas"]
    for area in ("c", "simulator", "package", "gpu"):
        results = [slip["result"] for slip in areas[area]]
        at_first = sum(x in ("killed", "timeout") for x in results)
        killed, equivalent = at_first + results.count("killed by a new test"), results.count("equivalent")
        shares = [f"{x} ({100 * x / len(results):.0f} %)" for x in (at_first, killed)]
        cells = [{"c": "C"}.get(area, area), len(results), *shares, equivalent]
        cells += [f"{100 * killed / (len(results) - equivalent):.0f} %", *map(results.count, ("not run", "not killed"))]
        assert f"\n| {' | '.join(map(str, cells))} |\n" in page
        for slip in areas[area]:
            if not slip["by"]:
                assert f"\n| `{slip['file']}:{slip['line']}` | {slip['result']} | {slip['note']} |\n" in page
