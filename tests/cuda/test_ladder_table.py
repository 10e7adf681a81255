"""The table of the ladder, its files and their headers. Needs neither CuPy nor a GPU."""

import re
from importlib.resources import files
from pathlib import Path

import ladder_headers
import pytest
from kernel_headers import LABELS, labels_of
from pysimd.gpu_kernels import ladder_table

import pysimd
from pysimd import dtypes, sources
from pysimd.bench import cuda_ladder as ladder_report

LADDER = files("pysimd.gpu_kernels").joinpath("ladder")

KERNELS = {
    "slides": (*(f"sgemm{i}" for i in range(6)), "sgemm5, version 6", "sgemv7"),
    "kernel 5": ("sgemm_blocktiling_2dthreadtiling",),
    "readme": ("sgemm_naive_block_tile", "sgemm_v1", "sgemm_v2", "sgemm_v3"),
    "blog": tuple(f"mysgemm_v{i}" for i in range(1, 12)),
}
"""Every kernel of the documents that the ladder covers."""

every_row = pytest.mark.parametrize("row", ladder_table.RUNGS, ids=lambda row: row.name)


def test_rows_are_in_order_and_unique():
    assert len(ladder_table.BY_NAME) == len(ladder_table.RUNGS)
    first = [row.number for row in ladder_table.RUNGS if row.number.startswith("S")]
    assert first == [f"S{i}" for i in range(len(first))]
    for letter in "HIT":
        numbers = [row.number for row in ladder_table.RUNGS if row.number.startswith(letter)]
        assert numbers == [f"{letter}{i}" for i in range(1, len(numbers) + 1)]
    assert len(first) >= 15
    assert [row.number for row in ladder_table.RUNGS[: len(first)]] == first


def test_every_file_is_used():
    assert sorted(x.name for x in LADDER.iterdir() if x.name.endswith(".cu")) == sorted(
        row.source for row in ladder_table.RUNGS
    )
    texts = "".join(x.read_text() for x in LADDER.iterdir())
    included = set(re.findall(r'#include "(\w+\.cuh)"', texts))
    assert {x.name for x in LADDER.iterdir() if x.name.endswith(".cuh")} <= included


def test_every_kernel_of_the_documents_is_covered_once():
    covered = [(document, kernel) for row in ladder_table.RUNGS for document, kernel in row.covers]
    assert sorted(covered) == sorted((document, kernel) for document, kernels in KERNELS.items() for kernel in kernels)
    assert set(ladder_table.DOCUMENTS) == set(KERNELS)


@every_row
def test_header_says_what_the_row_says(row):
    """The labels that need no machine code; ladder_headers.py checks the others."""
    text = ladder_headers.text_of(row)
    labels = labels_of(text)
    assert text.startswith(f"/* {row.name}, {row.number}: ")
    assert ("step", "covers", *LABELS) == tuple(labels)
    assert labels["needs"] == row.requires
    assert labels["tile"] == ladder_headers.tile(row, text)
    assert labels["ratio"] == ladder_headers.ratio(row)
    assert labels["lanes"] == str(row.lanes)
    assert labels["launch"] == ladder_headers.launch(row)
    for document, kernel in row.covers:
        covered = labels["covers"].replace(",", ";")
        assert document in covered
        assert kernel.replace(",", ";") in covered


@every_row
def test_tile_is_divided_among_the_threads(row):
    at_a_time = row.tm * row.tn * row.threads // row.lanes
    assert row.bm * row.bn % at_a_time == 0
    assert row.bm * row.bn == at_a_time or row.lanes > 1
    assert row.types in dtypes.FAMILIES


@every_row
def test_rung_shows_its_row(row):
    rung = pysimd.rung(row.name)
    assert (rung.number, rung.new, rung.covers, rung.threads) == (row.number, row.new, row.covers, row.threads)
    assert rung.ratio.value == (0.5 if row.inner else row.tm * row.tn / (row.tm + row.tn))
    assert rung.source.startswith(f"/* {row.name}, ")
    assert bool(rung.unavailable_reason) != rung.available
    if not rung.available:
        assert (rung.registers, rung.shared_bytes, rung.local_bytes) == (None, None, None)
        with pytest.raises(pysimd.UnavailableError, match=re.escape(rung.unavailable_reason)):
            rung([[1.0]], [[1.0]])


@every_row
def test_entries_name_what_the_file_defines(row):
    text = LADDER.joinpath(row.source).read_text()
    parameters = re.search(rf"\)\s+{row.name}\((const [^)]*)\)", text)[1]
    maps = ["TensorMap map_a", "TensorMap map_b"] if row.tensor_blocks or row.loads_by_tma else []
    expected = ["Gemm p", *(["Schedule s"] if row.blocks or row.tensor_blocks else []), *maps]
    expected += ["TensorMap map_c"] if row.stores_by_tma else []
    assert re.findall(r"const (?:__grid_constant__ )?(\w+ \w+)", parameters) == expected
    for layout in ladder_table.layouts(row):
        if row.copies_k_major:
            before = [ladder_table.pack_entry(row, layout)]
            for name in ladder_table.remainder_entries(row, layout) if row.remainders else before:
                assert re.search(
                    rf"\)\s+{name.split('<')[0]}\(const", sources.joined(f"gpu_kernels/ladder/{row.source}")
                )
            assert ladder_table.entry(row, layout, layout) == ladder_table.entry(row, "K_MAJOR", "K_MAJOR")
            assert ladder_table.entry(row, layout, layout).startswith(
                f"{row.name}<{row.bn if row.tensor_blocks else row.bk}, "
            )
        else:
            assert ladder_table.entry(row, layout, layout).startswith(f"{row.name}<{layout}, {layout}")


def test_the_tutorial_has_a_section_for_every_rung():
    docs = Path(__file__).parents[2] / "docs"
    page = "".join((docs / f"{name}.md").read_text() for name in ("ladder", "ladder_tensor_cores"))
    assert [row.name for row in ladder_table.RUNGS if f" {row.number} {row.name}" not in page] == []
    assert set(re.findall(r"<!-- rung:(\w+) -->", page)) <= set(ladder_table.BY_NAME)
    assert sorted(re.findall(r"<!-- ([\w-]+):begin -->", page)) == ["bench", "int8", "ozaki2", "tf32x3-error"]


def test_outer_and_inner_product_differ_in_nothing_else():
    """S4 and S6 are the pair that shows 0.5 against 1: same tile, same threads, loops interchanged."""
    inner, outer = (ladder_table.BY_NAME[name] for name in ("thread2x2_inner", "reg2x2_outer"))
    shape = ("bm", "bn", "bk", "tm", "tn", "threads", "wide")
    assert all(getattr(inner, field) == getattr(outer, field) for field in shape)
    assert (inner.macs / inner.loads, outer.macs / outer.loads) == (0.5, 1.0)


def test_an_unknown_name_raises_with_the_closest():
    with pytest.raises(pysimd.UnknownKernelError, match="did you mean smem_dbuf"):
        pysimd.rung("smem_dubf")
    with pytest.raises(pysimd.OptionError, match="backend='tpu' has no ladder: give one of 'cpu', 'cuda', 'hip'"):
        pysimd.rungs("tpu")


def test_the_list_needs_no_gpu():
    rows = ladder_report.listed()
    assert [row.name for row in rows] == [row.name for row in ladder_table.RUNGS]
    assert all(row.tflops is None for row in rows)
