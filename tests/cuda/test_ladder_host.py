"""Panels and fragments of gpu_kernels/ladder/i8_mma_sync.cu, compiled for the host: every element of a tile, no bank
conflicts. Needs no GPU."""

import shutil
import subprocess
from pathlib import Path

import pytest

from pysimd import sources

HARNESS = Path(__file__).parents[1] / "support" / "ladder_fragments.cpp"
COMPILER = shutil.which("g++") or shutil.which("clang++")

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")


def between(text, begin, end=None):
    start = text.index(begin)
    return text[start : None if end is None else text.index(end, start)]


def kernel_text():
    """What has no instruction of a GPU in it."""
    gemm, panel, mma = (sources.read(f"gpu_kernels/ladder/{name}.cuh") for name in ("gemm", "f16_panel", "mma"))
    return "\n".join(
        (
            between(gemm, "enum Layout", "struct Gemm"),
            between(panel, "/* XOR swizzle"),
            between(mma, "enum Side", "/* d (16 x 8)"),
            between(mma, "/* The address that this lane", "/* Epilogue"),
        )
    )


def run(text, folder):
    source, program = folder / "fragments.cpp", folder / "fragments"
    source.write_text(HARNESS.read_text().replace("KERNEL\n\n", text + "\n", 1))
    subprocess.run(
        [COMPILER, "-std=c++17", "-O1", "-w", f"-I{HARNESS.parent}", str(source), "-o", str(program)], check=True
    )
    return subprocess.run([str(program)], capture_output=True, text=True, check=False)


def test_every_element_of_a_tile(tmp_path):
    """Also of edge tiles and of a last panel that is not full."""
    done = run(kernel_text(), tmp_path)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("right", "slip"),
    [
        ("line / TOGETHER % (8", "line % (8"),
        ("first ^ 32 * k", "first ^ 16 * k"),
        ("matrix % 2 : matrix / 2", "matrix / 2 : matrix / 2"),
    ],
)
def test_a_slip_is_found(right, slip, tmp_path):
    text = kernel_text()
    assert text.count(right) == 1
    assert run(text.replace(right, slip), tmp_path).returncode == 1
