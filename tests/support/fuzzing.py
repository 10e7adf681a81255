"""Inputs for readers of files: right ones, changed at random. What may come out are the package's own errors."""

from __future__ import annotations

import random
import signal
import struct
from collections.abc import Callable, Sequence
from contextlib import contextmanager

import amd_waves
import numpy as np

import pysimd
from pysimd import simulator
from pysimd.simulator import elf, run
from pysimd.simulator.assembly import instructions_of
from pysimd.simulator.compilers import OPTIONS
from pysimd.simulator.program import Program

_INTERESTING = (
    0,
    1,
    0x7F,
    0x80,
    0xFF,
    0x7FFF,
    0xFFFF,
    0x7FFFFFFF,
    0x80000000,
    0xFFFFFFFF,
    1 << 40,
    (1 << 63) - 1,
    1 << 63,
)

SOURCE = """
extern "C" __attribute__((global, amdgpu_flat_work_group_size(1, 64))) void sums(float* out, const float* a, int n) {
    __attribute__((shared)) static float part[64];
    int i = __builtin_amdgcn_workitem_id_x();
    float sum = 0;
    for (int k = 0; k < n; ++k) sum += a[(k * 64 + i) & 1023];
    part[i] = sum;
    __builtin_amdgcn_s_barrier();
    out[i] = i < 3 ? sum : part[63 - i] * 2;
}
"""
TARGETS = ("gfx906", "gfx942", "gfx1100")


def mutated(data: bytes, rng: random.Random) -> bytes:
    """One to eight changes: bits, bytes, numbers, and pieces that are repeated, moved or left out."""
    data = bytearray(data)
    for _ in range(rng.randint(1, 8)):
        at = rng.randrange(len(data) + 1)
        kind = rng.randrange(6)
        if kind == 0 and at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 1 and at < len(data):
            data[at] = rng.randrange(256)
        elif kind == 2:
            number = struct.pack("<Q", rng.choice(_INTERESTING))[: rng.choice((1, 2, 4, 8))]
            data[at : at + len(number)] = number
        elif kind == 3:
            del data[at : at + rng.choice((1, 4, 100))]
        elif kind == 4:
            start = rng.randrange(len(data) + 1)
            data[at:at] = data[start : start + rng.choice((1, 8, 64))]
        elif rng.random() < 0.1:
            del data[at:]
    return bytes(data)


@contextmanager
def limited(seconds: int):
    """TimeoutError after so many seconds of processor time: a machine may have other work, or stop."""

    def stop(*_):
        raise TimeoutError(f"more than {seconds} s")

    old = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, old)


# --- code objects ---


def elf_files() -> list[bytes]:
    """Right ones, of several targets."""
    made = [simulator.compile_hip(SOURCE, target) for target in TARGETS]
    made += [simulator.assemble(amd_waves.source("  s_nop 0", target), target) for target in TARGETS]
    return [x.elf for x in made]


def read_elf(data: bytes) -> None:
    """An input: it is read, or refused by a PysimdError."""
    try:
        with limited(10):
            elf.read_kernels(data)
    except pysimd.PysimdError:
        pass


# --- machine code as text ---


def listings() -> list[bytes]:
    """Listings, each after a line with its target."""
    return [f"{target}\n{simulator.compile_hip(SOURCE, target, OPTIONS).assembly}".encode() for target in TARGETS]


def mutated_lines(data: bytes, rng: random.Random) -> bytes:
    """Instructions repeated, moved and left out, and their words exchanged or changed."""
    target, *lines = data.decode(errors="replace").splitlines()
    for _ in range(rng.randint(1, 6)):
        at = rng.randrange(len(lines))
        kind = rng.randrange(6)
        if kind == 0:
            lines.insert(at, rng.choice(lines))
        elif kind == 1 and len(lines) > 2:
            del lines[at]
        elif kind == 2:
            lines[at] = mutated(lines[at].encode(), rng).decode(errors="replace").replace("\n", " ")
        else:
            words, others = lines[at].split(" "), rng.choice(lines).split(" ")
            words[rng.randrange(len(words))] = rng.choice(
                [*others, "0", "-1", "0xffffffff", "v255", "s[0:1]", "a0", "vcc"]
            )
            lines[at] = " ".join(words)
    return "\n".join([target, *lines]).encode()


_KERNELS: dict[str, dict[str, elf.Kernel]] = {}


def run_code(data: bytes) -> None:
    """An input: its instructions are read, decoded and executed by a few waves, or refused by a PysimdError."""
    target, _, text = data.decode(errors="replace").partition("\n")
    if target not in TARGETS:
        return
    if target not in _KERNELS:
        _KERNELS[target] = simulator.compile_hip(SOURCE, target).kernels
    kernels, old = _KERNELS[target], run.MOST_INSTRUCTIONS
    run.MOST_INSTRUCTIONS = 2000
    try:
        with limited(20), np.errstate(all="ignore"):
            code = simulator.CodeObject.__new__(simulator.CodeObject)
            code.kernels, code.target, code._programs = kernels, target, {}
            code.instructions = instructions_of(text, kernels)
            code._programs = {name: Program(code.instructions[name], kernels[name], target) for name in kernels}
            memory = simulator.Memory()
            out, a = np.zeros(64, np.float32), np.ones(1024, np.float32)
            arguments = struct.pack("<QQi", memory.add(out, "out"), memory.add(a, "a"), 3)
            simulator.launch(code, "sums", (1,), (64,), arguments, memory)
    except pysimd.PysimdError:
        pass
    finally:
        run.MOST_INSTRUCTIONS = old


Target = tuple[Callable[[], Sequence[bytes]], Callable[[bytes, random.Random], bytes], Callable[[bytes], None]]

READERS: dict[str, Target] = {
    "elf": (elf_files, mutated, read_elf),
    "code": (listings, mutated_lines, run_code),
}
"""Right inputs, how they are changed, and what reads them."""
