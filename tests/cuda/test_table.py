"""The table, the files and the numbers that the host works out. Needs neither CuPy nor a GPU."""

import itertools
import re
from dataclasses import replace
from importlib.resources import files
from types import SimpleNamespace

import numpy as np
import pytest
from kernel_headers import LABELS, labels_of
from pysimd.gpu_kernels import table

import pysimd
from pysimd import dtypes, sources
from pysimd.backends.cuda import nvrtc
from pysimd.backends.gpu import batched, launches, tilings
from pysimd.ratio import tile_ratio

MICRO = files("pysimd.gpu_kernels").joinpath("micro")
BATCHES = {table.BATCHED, table.BATCHED_ANY, table.BatchedMma.source, table.TmaTile.source, table.MnTile.source}
NARROW = {table.Narrow.source, table.Narrow.any_source}
SOURCES = sorted({row.source for row in table.KERNELS} | BATCHES | NARROW)
ARGUMENTS = {table.TmaTile.source: "TmaBatch", table.MnTile.source: "TmaBatch", **dict.fromkeys(NARROW, "Gemm")}


@pytest.mark.parametrize("row", table.KERNELS, ids=lambda row: row.name)
def test_name_follows_from_the_row(row):
    assert row.name == f"cuda_{row.types}_{row.form}_{row.mr}x{row.nr}"
    assert row.types in dtypes.FAMILIES
    assert row.requires in table.REQUIRES


def test_rows_are_sorted_and_unique():
    names = [row.name for row in table.KERNELS]
    assert names == sorted(set(names))


def test_every_file_is_used():
    assert sorted(x.name for x in MICRO.iterdir() if x.name.endswith(".cu")) == SOURCES
    included = {path for source in SOURCES for path in sources.with_includes(f"gpu_kernels/micro/{source}")}
    assert {f"gpu_kernels/micro/{x.name}" for x in MICRO.iterdir() if x.name.endswith(".cuh")} <= included


@pytest.mark.parametrize("source", SOURCES)
def test_header_labels(source):
    assert sorted(labels_of(MICRO.joinpath(source).read_text())) == sorted(LABELS)


@pytest.mark.parametrize("row", table.KERNELS, ids=lambda row: row.name)
def test_header_says_what_the_row_says(row):
    labels = labels_of(MICRO.joinpath(row.source).read_text())
    stem = row.source.removesuffix(".cu")
    assert row.name == stem or row.name in labels["tile"]
    assert row.requires in labels["needs"]
    assert f"{tile_ratio(row.form, row.mr, row.nr, 1, 1).value:.2f}" in labels["ratio"]
    lanes = labels["lanes"].partition(";")[0]
    assert lanes == str(row.lanes) or lanes == "MR*NR"


@pytest.mark.parametrize("row", table.KERNELS, ids=lambda row: row.name)
def test_kernel_shows_its_row(row):
    kernel = pysimd.kernel(row.name)
    assert (kernel.backend, kernel.target, kernel.form, kernel.types) == ("cuda", "cuda", row.form, row.types)
    assert kernel.ratio.value == tile_ratio(row.form, row.mr, row.nr, 1, 1).value
    assert kernel.source.startswith("/* ")
    assert bool(kernel.unavailable_reason) != kernel.available


@pytest.mark.parametrize("source", SOURCES)
def test_headers_are_written_into_the_source_once(source):
    text = nvrtc.source(source)
    assert '#include "' not in text
    assert text.count(f"struct {ARGUMENTS.get(source, 'Call')} {{") == 1
    assert text.splitlines()[0] == f'#line 1 "{source}"'


def test_call_has_the_size_of_the_struct():
    text = MICRO.joinpath("call.cuh").read_text()
    struct = re.search(r"struct Call \{(.*?)\};", text, re.DOTALL)[1]
    struct = re.sub(r"/\*.*?\*/", "", struct)
    fields = re.findall(r"(\w+)(\[DIMS\])?(?=[,;])", struct)
    assert sum(launches.DIMS if array else 1 for _, array in fields) * 8 == launches.CALL.itemsize


@pytest.mark.parametrize("types", table.BATCHED_TYPES)
def test_every_tiling_fits(types):
    """Threads and shared memory of a block stay within what every device has, for every small shape."""
    family = dtypes.FAMILIES[types]
    size, size_c = dtypes.dtype_of(family.a).itemsize, dtypes.dtype_of(family.c).itemsize
    for m in range(1, table.BATCHED_MOST_MN + 1):
        for n in range(1, table.BATCHED_MOST_MN + 1):
            for k in (0, 1, 2, 3, 7, 8, 16, 31, 33, table.BATCHED_MOST_K):
                a, b, c = (_fake((5000, *shape), s) for shape, s in (((m, k), size), ((k, n), size), ((m, n), size_c)))
                instance = batched.instance(types, launches.CallOperands(a, b, None, c))
                assert instance.threads <= 1024
                assert batched.dynamic_shared_bytes(instance) == 0
                assert instance.tm * instance.tn * (size_c // 4 or 1) <= 64
                one_more = instance.products + 1
                lanes, moved = -(-m // instance.tm) * -(-n // instance.tn), max((m * k + k * n) * size, m * n * size_c)
                assert one_more * lanes > 128 or one_more * moved > 24_000, "the block has room for another product"


@pytest.mark.parametrize("types", table.BATCHED_LARGER)
def test_every_larger_tiling_fits(types):
    """Those that not every GPU takes: at most what a block can have from sm_80 on, and one product where it is
    dynamic."""
    size = dtypes.dtype_of(dtypes.FAMILIES[types].a).itemsize
    larger = table.BATCHED_LARGER[types]
    sizes = {x for x in (larger.least, 7, 17, 33, 48, 65, 96, 112, 128) if larger.least <= x <= larger.most}
    for m, n, k in itertools.product(sizes, sizes, {0, 1, 5, 30, *sizes}):
        if batched.takes(m, n, k) or not batched.takes_larger(types, m, n, k):
            continue
        a, b, c = (_fake((5000, *shape), size) for shape in ((m, k), (k, n), (m, n)))
        instance = batched.instance(types, launches.CallOperands(a, b, None, c))
        shared = batched.dynamic_shared_bytes(instance)
        assert shared <= larger.shared_bytes
        assert not shared or (instance.products == 1 and not batched.fits_static(types, m, n, k))
        assert instance.threads <= 320
        assert instance.tm * instance.tn * size <= 4 * 72


@pytest.mark.parametrize("types", table.MMA_FROM)
def test_every_tiling_for_tensor_cores_fits(types):
    """Any strides take the most shared memory; what a block can have from sm_80 on, where sm_86 has the least."""
    family = dtypes.FAMILIES[types]
    size, size_c = dtypes.dtype_of(family.a).itemsize, dtypes.dtype_of(family.c).itemsize
    for m, n, k in itertools.product((1, 9, 16, 33, 48, 63, 65, 80, 97, 113, 127, 128), repeat=3):
        a, b, c = (_fake((5000, *shape), s) for shape, s in (((m, k), size), ((k, n), size), ((m, n), size_c)))
        made = batched.instance(types, launches.CallOperands(a, b, None, c), mma=True)
        assert made.threads <= 512
        assert made.tm * made.tn * made.products <= 128 * 128
        for source in ("CONTIGUOUS", "STRIDED"):
            assert batched.dynamic_shared_bytes(replace(made, a=source, b=source)) <= 99 << 10


@pytest.mark.parametrize(
    ("m", "n", "k", "size", "tile"),
    [
        (128, 128, 128, 2, (64, 64)),
        (113, 113, 113, 2, (64, 32)),
        (114, 114, 114, 2, (64, 64)),
        (114, 114, 114, 1, (64, 32)),
        (128, 128, 113, 2, (64, 32)),
        (113, 128, 128, 2, (64, 64)),
        (97, 97, 97, 2, (32, 112)),
    ],
)
def test_rows_that_are_copied_through_registers_get_more_warps(m, n, k, size, tile):
    assert tilings.mma_tiling(m, n, k, size)[:2] == tile


def _fake(shape, size, strides=None, pointer=1 << 20):
    """As much of an array as the host looks at."""
    if strides is None:
        strides = tuple(size * int(np.prod(shape[d + 1 :])) for d in range(len(shape)))
    return SimpleNamespace(
        shape=shape, strides=strides, itemsize=size, ndim=len(shape), data=SimpleNamespace(ptr=pointer)
    )


LAYOUTS = {
    "rows": ((8, 64), (256, 4), "K_MAJOR"),
    "packed panel": ((8, 64), (4, 32), "PACKED"),
    "columns with gaps": ((8, 64), (4, 64), "MN_MAJOR"),
    "rows of an odd length": ((8, 65), (260, 4), "ANY"),
    "backwards": ((8, 64), (256, -4), "ANY"),
    "all the same": ((8, 64), (0, 0), "ANY"),
    "one row repeated": ((8, 64), (0, 4), "K_MAJOR"),
}


@pytest.mark.parametrize("case", LAYOUTS)
def test_layout_of_a(case):
    shape, strides, expected = LAYOUTS[case]
    a, b, c = _fake(shape, 4, strides), _fake((shape[1], 8), 4), _fake((8, 8), 4)
    operands = launches.CallOperands(a, b, None, c)
    assert launches.layout(operands, 0, 8, ("K_MAJOR", "MN_MAJOR", "PACKED")) == expected
    a.data.ptr += 4
    assert launches.layout(launches.CallOperands(a, b, None, c), 0, 8, ("K_MAJOR", "MN_MAJOR", "PACKED")) == "ANY"


def test_many_batch_dimensions_are_cut_into_calls():
    """Six dimensions that do not merge: four in a Call, the host iterates over the others."""
    batch = (2, 3, 2, 3, 2, 3)
    a = _fake((*batch, 4, 4), 4)
    a.strides = (*(s if d % 2 else 0 for d, s in enumerate(a.strides[:-2])), 16, 4)
    b, c = _fake((4, 4), 4), _fake((*batch, 4, 4), 4)
    calls = list(launches.CallOperands(a, b, None, c).calls(False))
    assert len(calls) == 6
    assert all(int(call[launches.BATCH]) == 36 for call in calls)
    assert len({int(call[3]) for call in calls}) == 6
