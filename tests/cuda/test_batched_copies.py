"""The copies of batched_mma.cu to and from shared memory, compiled for the host. Needs no GPU."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from pysimd import sources

HARNESS = Path(__file__).parents[1] / "support" / "batched_copies.cpp"
COMPILER = shutil.which("g++") or shutil.which("clang++")
ASYNCHRONOUS = re.compile(
    r'u32 to = \(u32\)__cvta_generic_to_shared\((.*?)\);\s*asm volatile\(.*?"memory"\);', re.DOTALL
)


def between(text, begin, end):
    start = text.index(begin)
    return text[start : text.index(end, start)]


def kernel_text():
    """What has no instruction of a GPU in it; cp.async of 4 and 8 bytes is memcpy."""
    batched, uneven_rows, operand, result = (
        sources.read(f"gpu_kernels/micro/{name}.cuh")
        for name in ("batched", "uneven_rows", "shared_operand", "staged_result")
    )
    parts = [
        between(batched, "/* How a batch of an operand lies", "/* The shared memory of a block"),
        between(batched, "/* Applies `one` to", "/* One element; asynchronous"),
        uneven_rows.partition('#include "call.cuh"')[2],
        operand.partition('#include "uneven_rows.cuh"')[2],
        between(result, "/* C of all products of a block", "/* Epilogue through shared memory"),
    ]
    text, count = ASYNCHRONOUS.subn(r"memcpy(\1, from + x, PIECE);", "\n".join(parts))
    assert count == 1
    return text


def run(text, folder):
    source, program = folder / "copies.cpp", folder / "copies"
    source.write_text(HARNESS.read_text().replace("KERNEL\n\n", text + "\n", 1))
    subprocess.run([COMPILER, "-std=c++17", "-w", str(source), "-o", str(program)], check=True)
    return subprocess.run([str(program)], capture_output=True, text=True, check=False)


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")
def test_every_element_arrives(tmp_path):
    """Also of rows that end anywhere, of a last block that is not full, and nothing behind the end."""
    done = run(kernel_text(), tmp_path)
    assert done.returncode == 0, done.stdout


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")
def test_a_slip_is_found(tmp_path):
    text = kernel_text()
    assert "(e < left ? 0" in text
    assert run(text.replace("(e < left ? 0", "(e <= left ? 0"), tmp_path).returncode == 1
