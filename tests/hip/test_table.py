"""The table, the files and the numbers that the host works out. Needs neither CuPy nor a compiler."""

import math
import re
from importlib.resources import files
from types import SimpleNamespace

import pytest
from kernel_headers import LABELS, labels_of
from pysimd.gpu_kernels import table as gpu_table
from pysimd.hip_kernels import table

import pysimd
from pysimd import dtypes, sources
from pysimd.backends.gpu import batched
from pysimd.backends.gpu.launches import BATCH, CallOperands
from pysimd.backends.hip import implementation as hip
from pysimd.backends.hip import tiles as hip_tiles
from pysimd.ratio import tile_ratio

HIP = files("pysimd.hip_kernels")
SOURCES = sorted({row.source for row in table.KERNELS} | {table.BATCHED})
every_row = pytest.mark.parametrize("row", table.KERNELS, ids=lambda row: row.name)


@every_row
def test_name_follows_from_the_row(row):
    assert row.name == f"hip_{row.types}_{row.form}_{row.mr}x{row.nr}"
    assert row.types in dtypes.FAMILIES
    assert row.requires in table.FEATURES
    assert [t for t in table.TARGETS if row.requires in table.features(t)]


def test_rows_are_sorted_and_unique():
    names = [row.name for row in table.KERNELS]
    assert names == sorted(set(names))


def test_every_file_is_used():
    assert sorted(x.name for x in HIP.iterdir() if x.name.endswith(".hip")) == SOURCES
    included = {path for source in SOURCES for path in sources.with_includes(f"hip_kernels/{source}")}
    assert {f"hip_kernels/{x.name}" for x in HIP.iterdir() if x.name.endswith(".h")} <= included


@pytest.mark.parametrize("source", SOURCES)
def test_header_labels(source):
    assert sorted(labels_of(HIP.joinpath(source).read_text())) == sorted(LABELS)


@every_row
def test_header_says_what_the_row_says(row):
    labels = labels_of(HIP.joinpath(row.source).read_text())
    assert row.name in labels["tile"]
    assert row.requires in labels["needs"].replace(":", " ").split()
    assert f"{tile_ratio(row.form, row.mr, row.nr, 1, 1).value:.2f}" in labels["ratio"]
    lanes = labels["lanes"].partition(";")[0]
    assert lanes == str(row.lanes) or (lanes == "MR*NR" and row.lanes == row.mr * row.nr)


@every_row
def test_kernel_shows_its_row(row):
    kernel = pysimd.kernel(row.name)
    assert (kernel.backend, kernel.target, kernel.form, kernel.types) == ("hip", "hip", row.form, row.types)
    assert kernel.ratio.value == tile_ratio(row.form, row.mr, row.nr, 1, 1).value
    assert kernel.source.startswith("/* ")
    assert bool(kernel.unavailable_reason) != kernel.available


@pytest.mark.parametrize("source", SOURCES)
def test_headers_are_written_into_the_source_once(source):
    text = sources.joined(f"hip_kernels/{source}")
    assert '#include "' not in text
    assert text.count("struct Call {") == 1
    assert text.splitlines()[0] == f'#line 1 "{source}"'


def test_no_instruction_is_written_by_hand():
    """The compiler selects them all: the one asm statement is empty."""
    for source in SOURCES:
        device = re.sub(r"/\*.*?\*/", "", sources.joined(f"hip_kernels/{source}"), flags=re.DOTALL)
        device = re.sub(r"#if __CUDA_ARCH__ >= 800.*?#e(lse|ndif)", "", device, flags=re.DOTALL)
        assert set(re.findall(r'asm[^;(]*\(("[^"]*")', device)) <= {'""'}


SYMBOLS = {
    "outer<F32, 8, 8, K_MAJOR, PACKED, false>": "_Z5outerI3F32Li8ELi8EL6Layout1ELS1_3ELb0EEv4Call",
    "outer_dp4a<4, 4, ANY, ANY, true>": "_Z10outer_dp4aILi4ELi4EL6Layout0ELS0_0ELb1EEv4Call",
    "wmma_tile<ANY, K_MAJOR, false>": "_Z9wmma_tileIL6Layout0ELS0_1ELb0EEv4Call",
    gpu_table.Batched("f16", 3, 4, 5, tm=3, tn=4, products=128, b_transposed=True).entry: (
        "_Z7batchedI3F165ShapeILi3ELi4ELi5EE10ThreadTileILi3ELi4ELi128EE7OperandIL6Source0EL6Layout1EES8_Lb1EEv4Call"
    ),
    gpu_table.Batched("f64", 3, 4, 5, tm=3, tn=4, products=128, b="BROADCAST", whole=False).entry: (
        "_Z7batchedI3F645ShapeILi3ELi4ELi5EE10ThreadTileILi3ELi4ELi128EE7OperandIL6Source0EL6Layout1EES5_ILS6_2ELS7_2EELb0EEv4Call"
    ),
}


@pytest.mark.parametrize("entry", SYMBOLS)
def test_symbols(entry):
    """As the compilers name them; that every instance is found in what was compiled, the other tests show."""
    assert table.symbol(entry) == SYMBOLS[entry]


def test_features():
    assert table.features("gfx906") == ("gfx900",)
    assert table.features("gfx90a") == ("gfx900", "mfma")
    assert table.features("gfx1101") == ("gfx900", "wmma")
    assert table.features("gfx803") == ()


def fake(shape, size, strides=None, pointer=1 << 20):
    """As much of an array as the host looks at."""
    if strides is None:
        strides = tuple(size * math.prod(shape[d + 1 :]) for d in range(len(shape)))
    return SimpleNamespace(
        shape=shape, strides=strides, itemsize=size, ndim=len(shape), data=SimpleNamespace(ptr=pointer)
    )


LARGE = {
    "a long batch": ((1 << 27, 4, 4), None),
    "two dimensions that do not merge": ((3, 1 << 26, 4, 4), (64, 192, 16, 4)),
    "the last of them too long alone": ((2, 1 << 28, 4, 4), (64, 128, 16, 4)),
}


@pytest.mark.parametrize("case", LARGE)
@pytest.mark.parametrize("name", ["hip_f32_inner_4x4", "hip_f32_outer_4x4"])
def test_launches_stay_within_what_hip_counts(name, case):
    """HIP counts the threads of a launch in 32 bits; all products are done, each once."""
    row = table.BY_NAME[name]
    shape, strides = LARGE[case]
    batch = shape[:-2]
    c = fake(shape, 4, strides)
    operands = CallOperands(fake((4, 4), 4), fake((4, 4), 4), None, c)
    _, launches = hip_tiles.plan(row, operands)
    done, starts = 0, set()
    for grid, block, call in launches:
        assert grid[0] * block[0] < 1 << 32
        assert grid[0] * block[0] >= int(call[BATCH]) * row.lanes
        done += int(call[BATCH])
        starts.add(int(call[3]))
        if len(starts) == 1000:
            break
    assert done == math.prod(batch) or len(starts) == 1000


def test_batched_launches_stay_within_what_hip_counts():
    """A batch of 16x16 products on shared operands: more than 2**32 threads in all."""
    operands = CallOperands(fake((16, 16), 4), fake((16, 16), 4), None, fake((1 << 28, 16, 16), 4))
    made = batched.instance("f32", operands)
    launches = list(batched.launches(operands, made, None, hip_tiles.MOST_THREADS))
    assert all(grid[0] * block[0] < 1 << 32 for _, grid, block, _ in launches)
    assert sum(int(call[BATCH]) for *_, call in launches) == 1 << 28
    assert len(launches) > 1


def test_a_single_product_that_is_too_large_is_refused():
    row = table.BY_NAME["hip_f32_inner_8x8"]
    a, b, c = fake((1 << 17, 8), 4), fake((8, 1 << 17), 4), fake((1 << 17, 1 << 17), 4)
    with pytest.raises(pysimd.ShapeError, match="tiles, a launch at most"):
        list(hip_tiles.plan(row, CallOperands(a, b, None, c))[1])


def test_matmul_offers_what_the_batched_kernel_multiplies():
    assert set(hip.HIP.offered) == set(gpu_table.BATCHED_TYPES)
