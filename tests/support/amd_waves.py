"""Waves with chosen registers, for instructions written by hand; and kernels around such instructions."""

from pathlib import Path

import numpy as np

from pysimd import simulator
from pysimd.simulator.assembly import parse
from pysimd.simulator.counts import Traffic
from pysimd.simulator.gang import EXEC, VCC, Gang, Shared
from pysimd.simulator.instructions import decode
from pysimd.simulator.instructions.base import Machine
from pysimd.simulator.memory import LocalMemory, Memory

WAVES = 2

PROBES = (Path(__file__).parents[1] / "hip" / "simulator" / "probes.hip").read_text()


def wave_size(target: str) -> int:
    return 64 if target.startswith("gfx9") else 32


def probes(target: str) -> simulator.CodeObject:
    """The kernels of probes.hip for a target."""
    return simulator.compile_hip(PROBES, target, (*simulator.OPTIONS, f"-DWAVE={wave_size(target)}"))


def new_gang(target: str, lds: int = 0) -> Gang:
    """Two waves of one block, all lanes active, no register defined."""
    lanes = wave_size(target)
    shared = Shared(Memory(), LocalMemory(1, lds), Traffic())
    gang = Gang(np.arange(WAVES), np.zeros(WAVES, int), np.arange(WAVES) + 1, lanes, (96, 96), shared)
    gang.exists[...] = True
    for i in range(lanes // 32):
        gang.write_s(EXEC + i, np.uint32(0xFFFFFFFF))
    return gang


def step(gang: Gang, target: str, line: str) -> None:
    """Run one instruction."""
    run = decode(parse(line), Machine(target, wave_size(target)))
    gang.start_step()
    with np.errstate(all="ignore"):
        run(gang)


class Registers:
    """What registers hold, in the type that the reader wants: ``r.f32(1)`` is v1 as float32, shape (waves, lanes)."""

    def __init__(self, gang: Gang):
        self.v, self.s = gang.v.copy(), gang.s.copy()
        self.lanes = gang.lanes

    def u32(self, index: int) -> np.ndarray:
        return self.v[index]

    def i32(self, index: int) -> np.ndarray:
        return self.v[index].view(np.int32)

    def f32(self, index: int) -> np.ndarray:
        return self.v[index].view(np.float32)

    def half(self, index: int, high: int = 0, dtype=np.float16) -> np.ndarray:
        return (self.v[index] >> np.uint32(16 * high)).astype(np.uint16).view(dtype)

    def byte(self, index: int, number: int, dtype=np.int8) -> np.ndarray:
        return (self.v[index] >> np.uint32(8 * number)).astype(np.uint8).view(dtype).astype(np.int64)

    def u64(self, index: int) -> np.ndarray:
        return self.v[index].astype(np.uint64) | self.v[index + 1].astype(np.uint64) << np.uint64(32)

    def i64(self, index: int) -> np.ndarray:
        return self.u64(index).view(np.int64)

    def f64(self, index: int) -> np.ndarray:
        return self.u64(index).view(np.float64)

    def scalar(self, index: int) -> np.ndarray:
        """An SGPR, as a column that broadcasts to the lanes."""
        return self.s[:, index, None]

    def scalar64(self, index: int) -> np.ndarray:
        return self.scalar(index).astype(np.uint64) | self.scalar(index + 1).astype(np.uint64) << np.uint64(32)

    def mask(self, index: int) -> np.ndarray:
        """A bit per lane, from one or two SGPRs, as bool (waves, lanes)."""
        words = [self.s[:, index + i // 32] >> np.uint32(i % 32) & np.uint32(1) for i in range(self.lanes)]
        return np.stack(words, axis=1) == 1

    def vcc(self) -> np.ndarray:
        return self.mask(VCC)


def pack(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Two values of 16 bits as uint32."""
    return low.view(np.uint16).astype(np.uint32) | high.view(np.uint16).astype(np.uint32) << np.uint32(16)


def source(body: str, target: str, *, arguments: int = 24, lds: int = 0, name: str = "probe") -> str:
    """Assembly of a kernel with this body: s[0:1] point to ``arguments`` bytes, the thread is in v0."""
    generation = 9 if target.startswith("gfx9") else 10
    own = [".amdhsa_accum_offset 96"] if target in ("gfx90a", "gfx942") else []
    if generation > 9:
        own.append(".amdhsa_wavefront_size32 1")
    return f"""
.amdgcn_target "amdgcn-amd-amdhsa--{target}"
.amdhsa_code_object_version 5
.text
.globl {name}
.p2align 8
.type {name},@function
{name}:
{body}
  s_endpgm
.section .rodata,"a",@progbits
.p2align 6
.amdhsa_kernel {name}
  .amdhsa_group_segment_fixed_size {lds}
  .amdhsa_user_sgpr_kernarg_segment_ptr 1
  .amdhsa_next_free_vgpr 160
  .amdhsa_next_free_sgpr 64
  {chr(10).join(own)}
.end_amdhsa_kernel
.amdgpu_metadata
---
amdhsa.kernels:
  - .args: [{{.offset: 0, .size: {arguments}, .value_kind: by_value}}]
    .group_segment_fixed_size: {lds}
    .kernarg_segment_align: 8
    .kernarg_segment_size: {arguments}
    .max_flat_workgroup_size: 1024
    .name: {name}
    .private_segment_fixed_size: 0
    .sgpr_count: 64
    .symbol: {name}.kd
    .vgpr_count: 160
    .wavefront_size: {wave_size(target)}
amdhsa.version: [1, 2]
...
.end_amdgpu_metadata
"""
