"""What tables of text show: every cell below its header is the field that the header names, in the header's unit."""

import re
from dataclasses import replace
from types import SimpleNamespace

import pytest
from pysimd._cpu import lib

import pysimd
from pysimd.bench import cpu_ladder, cpu_peaks, cuda_ladder, matmul, peaks
from pysimd.cli import bench, kernels, ladder
from pysimd.cli import peaks as peaks_command
from pysimd.report import html, rooflines
from pysimd.report.ratio_table import ratio_table
from pysimd.report.text import number


def cells(text: str) -> list[dict[str, str]]:
    """The rows of a table by header. Columns are two blanks apart."""
    header, *lines = text.splitlines()
    names = [x.strip() for x in header.split("  ") if x.strip()]
    found = []
    for line in lines:
        if not line.startswith("("):
            values = [x.strip() for x in line.split("  ") if x.strip()]
            assert len(values) == len(names), (names, values)
            found.append(dict(zip(names, values, strict=True)))
    return found


ROW = pysimd.compare(["generic_f32_outer_4x4"]).rows[0]
COUNTED = {"element_ratio": 1.25, "instruction_ratio": 1.75}
MEASURED = {
    "gflops": 11.5,
    "peak_gflops": 22.5,
    "percent_of_peak": 51.0,
    "percent_of_load_rate": 63.0,
    "percent_of_load_bandwidth": 34.0,
    "limit": "loads",
    "over_inner": 4.25,
}


def test_ratio_table():
    (found,) = cells(ratio_table([replace(ROW, available=True, counted=COUNTED, **MEASURED)]))
    assert found == {
        "kernel": "generic_f32_outer_4x4",
        "form": "outer",
        "tile": "4x4",
        "FMA/element": "2.00",
        "FMA/byte": "0.500",
        "GFLOP/s": "11.5",
        "peak": "22.5",
        "% of peak": "51",
        "counted": "1.25",
        "FMA/load": "1.75",
        "% of loads": "63",
        "% of load bytes": "34",
        "limit": "loads",
        "over inner": "4.25",
    }


def test_ratio_table_without_figures():
    (found,) = cells(ratio_table([ROW]))
    assert (found["GFLOP/s"], found["peak"], found["% of peak"]) == ("-", "-", "-")
    assert "counted" not in found


CPU_ROW = matmul.CpuRow("f32", 8, 1000, 1, "a_kernel", "numpy.matmul", 1.5, 2.5, 13.5, 14.5, 5.75, 410.5, 307.25, True)


def printed(capsys, command, **options) -> dict[str, str]:
    """The one row of the table that ``pysimd bench`` prints below a line about it."""
    options = {"types": ["f16"], "sizes": [16], "batch": [20_000], "threads": 1, "seconds": 0.1} | options
    command(SimpleNamespace(plot=None, json=False, **options))
    (found,) = cells(capsys.readouterr().out.split("\n", 1)[1])
    return found


def test_bench_table(capsys, monkeypatch):
    monkeypatch.setattr(matmul, "against_numpy", lambda *_, **__: CPU_ROW)
    assert printed(capsys, bench._on_cpu, types=["f32"]) == {
        "types": "f32",
        "size": "8x8",
        "batch": "1,000",
        "kernel": "a_kernel",
        "pysimd ns": "2.50",
        "numpy ns": "14.50",
        "numpy/pysimd": "5.75",
        "GFLOP/s": "410.5",
        "GB/s": "307.2",
    }


def test_bench_table_of_a_gpu(capsys, monkeypatch):
    row = matmul.CudaRow("f16", 16, 20_000, 3.25, 9.75, 3.0, 512.5, 96.5, True)
    monkeypatch.setattr(matmul, "check_cuda", lambda types: None)
    monkeypatch.setattr(matmul, "against_cublas", lambda *_, **__: row)
    assert printed(capsys, bench._on_cuda) == {
        "types": "f16",
        "size": "16x16",
        "batch": "20,000",
        "pysimd us": "3.2",
        "cublas us": "9.8",
        "cublas/pysimd": "3.00",
        "GFLOP/s": "512.5",
        "GB/s": "96.5",
    }
    assert bench._cuda_cells(replace(row, cublas_us=None, cublas_over_pysimd=None))[4:6] == ["-", "-"]


PEAK = peaks.Peak("avx2", "f32", "", 55.5, (peaks.Loads("L1", 1, 201.5, 6.5), peaks.Loads("memory", 1, 12.5, 0.4)))


def test_peaks_table():
    headers = ["target", "types", "GFLOP/s", "L1 GB/s", "L2 GB/s", "memory GB/s", "10^9 loads/s"]
    found = dict(zip(headers, peaks_command._cells(PEAK, ["L1", "L2", "memory"]), strict=True))
    assert list(found.values()) == ["avx2", "f32", "55.5", "201.5", "-", "12.5", "6.5"]


def test_peaks_of_a_page():
    """The columns of memories are in the order of the header."""
    page = html.page([], {}, (peaks.Peaks("cpu", {"device": "a CPU"}, "today", 1.0, (PEAK,)),), "{}")
    table = page[page.index("<h2>Peaks of") :]
    assert re.findall("<th>(.*?)</th>", table)[:5] == ["target", "types", "GFLOP/s", "L1, GB/s", "memory, GB/s"]
    assert re.findall("<td>(.*?)</td>", table)[:5] == ["avx2", "f32", "56", "202", "12"]


CUDA_RUNG = replace(
    cuda_ladder.listed()[0],
    size=1024,
    tflops=1.25,
    percent_of_cublas=33.5,
    percent_of_peak=44.5,
    registers=77,
    shared_bytes=8192,
)


def test_ladder_table_of_a_gpu():
    (found,) = cells(ladder._table([CUDA_RUNG], 66.5, "cuBLAS").replace("size    ", "size  no", 1))
    assert found["rung"] == CUDA_RUNG.name
    assert (found["size"], found["no"]) == ("1024", CUDA_RUNG.number)
    assert (found["TFLOP/s"], found["% of cuBLAS"], found["% of peak"]) == ("1.25", "33.5", "44.5")
    assert (found["FMA/element"], found["registers"], found["shared memory"]) == (
        number(CUDA_RUNG.ratio, 2), "77", "8,192",
    )  # fmt: skip
    assert "(peak: 66.5 TFLOP/s" in ladder._table([CUDA_RUNG], 66.5, "cuBLAS")


def test_ladder_table_of_the_cpu():
    counts = {"ratio": 4.25, "multiply_adds": 24, "loads": 16, "stores": 3, "spills": 1}
    row = replace(
        cpu_ladder.listed()[3],
        size=512,
        threads=2,
        gflops=91.5,
        percent_of_peak=81.5,
        over_numpy=0.95,
        gain=1.05,
        **counts,
    )
    line = ladder._cpu_table([row], {2: 112.5}).splitlines()
    headers = [x for x in line[0].split("  ") if x.strip()]
    assert [x.strip() for x in headers] == [
        "size", "threads", "rung", "GFLOP/s", "% of peak", "x NumPy", "x rung before",
        "FMA/element", "multiply-adds", "loads", "stores", "spills",
    ]  # fmt: skip
    assert line[1].split() == [
        "512",
        "2",
        row.number,
        row.name,
        "91.5",
        "81.5",
        "0.95",
        "1.05",
        "4.25",
        "24",
        "16",
        "3",
        "1",
    ]
    assert line[2].startswith("(peak: 112.5 GFLOP/s on 2 threads")


@pytest.mark.parametrize("kernel", [pysimd.kernel("generic_i8i32_outer_4x4"), pysimd.kernel("hip_f32_mfma_16x16")])
def test_table_of_kernels(kernel):
    headers = ["kernel", "backend", "types", "form", "tile", "k_group", "FMA/element", "here"]
    found = dict(zip(headers, kernels._cells(kernel), strict=True))
    assert found == {
        "kernel": kernel.name,
        "backend": kernel.backend,
        "types": kernel.types,
        "form": kernel.form,
        "tile": f"{kernel.mr}x{kernel.nr}",
        "k_group": kernel.k_group,
        "FMA/element": {"generic_i8i32_outer_4x4": "2.00", "hip_f32_mfma_16x16": "8.00"}[kernel.name],
        "here": "yes" if kernel.available else f"no: {kernel.unavailable_reason}",
    }


# --- units: 10^9, and seconds ---


def test_speed_and_bandwidth_of_matmul(monkeypatch):
    """1000 products of 8 x 8 in a microsecond."""
    times = {name: matmul.timing.Times(800.0, ns, 5) for name, ns in (("pysimd", 1000.0), ("numpy", 4000.0))}
    monkeypatch.setattr(matmul.timing, "times", lambda *given, **more: times)
    row = matmul.against_numpy("f32", 8, 1000)
    assert row.pysimd_gflops == 2 * 8**3 * 1000 / 1000  # operations a nanosecond are 10^9 a second
    assert row.pysimd_gbytes_per_s == 3 * 4 * 64 * 1000 / 1000
    assert row.numpy_over_pysimd == 4
    assert (row.pysimd_median_ns_per_product, row.numpy_median_ns_per_product) == (1.0, 4.0)
    assert (row.pysimd_best_ns_per_product, row.numpy_best_ns_per_product) == (0.8, 0.8)


def test_rates_of_loads():
    """16 bytes for each of the loads of a step, in one nanosecond."""
    place = cpu_peaks.index("generic", "f32")
    loads = cpu_peaks.Loads.__new__(cpu_peaks.Loads)
    loads._step = cpu_peaks.step_bytes(place)
    assert loads.rates(2.0) == {
        "gbytes_per_s": 16 * lib.PYSIMD_LOADS_A_STEP / 2,
        "gloads_per_s": lib.PYSIMD_LOADS_A_STEP / 2,
    }


def test_a_bandwidth_of_a_roofline_has_its_unit():
    assert rooflines._bandwidth(120.0).endswith("120 GB/s")
    assert rooflines._bandwidth(48_000.0).endswith("48 TB/s")
