"""Launches: the grid split into waves, gangs scheduled until every wave is done, and what was executed."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Sequence
from math import prod

import numpy as np

from pysimd.simulator.code_object import CodeObject
from pysimd.simulator.counts import Counts, Executed, Traffic
from pysimd.simulator.elf import Kernel
from pysimd.simulator.errors import LaunchError, SimulationError
from pysimd.simulator.gang import EXEC, TTMP, Gang, Shared
from pysimd.simulator.instructions.control import BARRIER, Parted
from pysimd.simulator.memory import LocalMemory, Memory
from pysimd.simulator.program import Program, macs

LDS_BYTES = 65536
"""Of one block, on every target that is modelled."""

WAVES_AT_ONCE = 64
"""About so many waves run together; more would only make the arrays of registers larger than the caches."""

MOST_INSTRUCTIONS = 50_000_000
"""Waves that run together and execute more than this are taken to run for ever."""


def launch(
    code_object: CodeObject,
    name: str,
    grid: Sequence[int],
    block: Sequence[int],
    kernarg: bytes,
    memory: Memory,
    dynamic_lds: int = 0,
) -> Counts:
    """Run a kernel on all blocks of a grid; arrays in ``memory`` are read and written in place.

    ``grid`` counts blocks and ``block`` threads, one to three numbers each. ``kernarg`` holds the arguments of the
    source, packed as the kernel's ``explicit_arguments`` say; the launch adds the hidden ones. ``dynamic_lds`` are
    bytes of LDS beyond those that the kernel declares.

    Raises LaunchError for a launch that the kernel does not allow, and SimulationError's other kinds for what the
    kernel does wrong or the simulator does not model.
    """
    program = code_object.program(name)
    kernel = program.kernel
    grid, block = _three("grid", grid), _three("block", block)
    _check(kernel, grid, block, kernarg, dynamic_lds)
    memory.new_launch()
    executed = _Executed(len(program.steps))
    traffic = Traffic()
    setup = _Setup(kernel, program, grid, block, kernarg, memory, dynamic_lds)
    waves_per_block = -(-prod(block) // kernel.wave_size)
    blocks_at_once = max(1, WAVES_AT_ONCE // waves_per_block)
    with np.errstate(all="ignore"):
        for first in range(0, prod(grid), blocks_at_once):
            blocks = np.arange(first, min(first + blocks_at_once, prod(grid)))
            shared = Shared(memory, LocalMemory(len(blocks), kernel.lds + dynamic_lds), traffic)
            _run_blocks(program, setup.gang(blocks, waves_per_block, shared), executed)
    return executed.counts(program, traffic)


def _three(what: str, sizes: Sequence[int]) -> tuple[int, int, int]:
    sizes = tuple(int(x) for x in sizes)
    if not 1 <= len(sizes) <= 3 or min(sizes) < 0 or (what == "block" and min(sizes) == 0):
        raise LaunchError(f"{what} {sizes}: expected one to three sizes, none negative, none of a block zero")
    return sizes + (1,) * (3 - len(sizes))


def _check(kernel: Kernel, grid, block, kernarg: bytes, dynamic_lds: int) -> None:
    if prod(block) > kernel.max_block:
        raise LaunchError(f"{kernel.name}: block {block} has {prod(block)} threads; at most {kernel.max_block}")
    expected = max((x.offset + x.size for x in kernel.explicit_arguments), default=0)
    if len(kernarg) != expected:
        raise LaunchError(f"{kernel.name}: {len(kernarg)} bytes of arguments given, {expected} expected")
    if kernel.lds + dynamic_lds > LDS_BYTES:
        raise LaunchError(f"{kernel.name}: {kernel.lds} + {dynamic_lds} bytes of LDS; at most {LDS_BYTES}")


class _Setup:
    """Registers as they are before the first instruction."""

    def __init__(self, kernel: Kernel, program: Program, grid, block, kernarg: bytes, memory: Memory, dynamic_lds: int):
        self.kernel, self.program, self.grid, self.block = kernel, program, grid, block
        self.arguments = memory.add_arguments(
            _with_hidden(kernel, grid, block, kernarg, dynamic_lds), f"the arguments of {kernel.name}"
        )
        threads = [g * b for g, b in zip(grid, block, strict=True)]
        packet = struct.pack("<6H4I", 0, 3, *block, 0, *threads, 0)
        packet += struct.pack("<I4Q", kernel.lds + dynamic_lds, 0, self.arguments, 0, 0)
        self.packet = memory.add_arguments(packet, "the dispatch packet")

    def gang(self, blocks: np.ndarray, waves_per_block: int, shared: Shared) -> Gang:
        """All waves of some blocks, at the first instruction."""
        size = self.kernel.wave_size
        block = np.repeat(blocks, waves_per_block)
        wave = np.tile(np.arange(waves_per_block), len(blocks))
        gang = Gang(
            waves=block * waves_per_block + wave,
            blocks=block - blocks[0],
            in_block=wave + 1,
            lanes=size,
            registers=self.program.registers,
            shared=shared,
        )
        thread = wave[:, None] * size + np.arange(size)
        gang.exists = thread < prod(self.block)
        words = np.packbits(gang.exists, axis=1, bitorder="little").view(np.uint32)
        for i in range(size // 32):
            gang.write_s(EXEC + i, words[:, i])
        self._set_scalars(gang, block)
        self._set_thread_ids(gang, thread)
        return gang

    def _set_scalars(self, gang: Gang, block: np.ndarray) -> None:
        """User SGPRs in the order that the kernel descriptor asks for, then the indices of the block."""
        properties, resources = self.kernel.properties, self.kernel.resources
        x, y, _ = self.grid
        index = (block % x, block // x % y, block // (x * y))
        at = 0
        for bit, count, value in (
            (0, 4, None),  # scratch resource
            (1, 2, self.packet),
            (2, 2, None),  # queue
            (3, 2, self.arguments),
            (4, 2, None),  # dispatch number
            (5, 2, None),  # scratch
            (6, 1, None),  # scratch size
        ):
            if properties >> bit & 1:
                if value is not None:
                    gang.write_s(at, np.uint32(value & 0xFFFFFFFF))
                    gang.write_s(at + 1, np.uint32(value >> 32))
                at += count
        at = max(at, resources >> 1 & 31)
        for i in range(3):
            if resources >> (7 + i) & 1:
                gang.write_s(at, index[i].astype(np.uint32))
                at += 1
        if self.program.machine.generation >= 12:
            gang.write_s(TTMP + 9, index[0].astype(np.uint32))
            gang.write_s(TTMP + 7, (index[1] | index[2] << 16).astype(np.uint32))

    def _set_thread_ids(self, gang: Gang, thread: np.ndarray) -> None:
        x, y, _ = self.block
        ids = (thread % x, thread // x % y, thread // (x * y))
        if self.program.machine.packed_thread_ids:
            gang.write_v(0, (ids[0] | ids[1] << 10 | ids[2] << 20).astype(np.uint32))
            return
        for i in range((self.kernel.resources >> 11 & 3) + 1):
            gang.write_v(i, ids[i].astype(np.uint32))


def _with_hidden(kernel: Kernel, grid, block, kernarg: bytes, dynamic_lds: int) -> bytes:
    """The argument segment: the caller's bytes, then the hidden arguments that the kernel's metadata lists."""
    values = {"hidden_grid_dims": max(i + 1 for i in range(3) if grid[i] * block[i] > 1 or i == 0)}
    values["hidden_dynamic_lds_size"] = dynamic_lds
    for i, axis in enumerate("xyz"):
        values[f"hidden_block_count_{axis}"] = grid[i]
        values[f"hidden_group_size_{axis}"] = block[i]
    segment = bytearray(kernarg.ljust(max(kernel.kernarg_size, len(kernarg)), b"\0"))
    for x in kernel.arguments:
        if x.kind in values:
            segment[x.offset : x.offset + x.size] = values[x.kind].to_bytes(x.size, "little")
    return bytes(segment)


class _Executed:
    """How often each instruction ran, by its place in the kernel."""

    def __init__(self, count: int):
        self.waves = [0] * count
        self.lanes = [0] * count
        self.barriers = 0
        self.steps = 0
        """Since the waves that run now have begun."""

    def counts(self, program: Program, traffic: Traffic) -> Counts:
        waves, lanes = Counter(), Counter()
        for instruction, in_waves, in_lanes in zip(program.instructions, self.waves, self.lanes, strict=True):
            for part in (instruction, instruction.second):
                if part is not None and in_waves:
                    waves[part.mnemonic] += in_waves
                    lanes[part.mnemonic] += in_lanes
        return Counts(
            instructions={name: Executed(waves[name], lanes[name]) for name in sorted(waves)},
            macs=sum(macs(name, waves[name], lanes[name]) for name in waves),
            load_bytes=dict(traffic.load_bytes),
            store_bytes=dict(traffic.store_bytes),
            barriers=self.barriers,
        )


def _run_blocks(program: Program, gang: Gang, executed: _Executed) -> None:
    """Between barriers every gang runs as far as it can. Blocks do not depend on one another: all wait together."""
    waiting = [gang]
    executed.steps = 0
    while waiting:
        waiting = _run_to_barrier(program, waiting, executed)
        gang.shared.lds.barrier()


def _run_to_barrier(program: Program, gangs: list[Gang], executed: _Executed) -> list[Gang]:
    """The gangs that wait at a barrier when no gang can go on. The gang furthest behind runs until it
    reaches the instruction of another."""
    ready, waiting = list(gangs), []
    while ready:
        place = min(x.pc for x in ready)
        gang = Gang.merged([x for x in ready if x.pc == place])
        ready = [x for x in ready if x.pc != place]
        stop = min((x.pc for x in ready), default=-1)
        event = _run(program, gang, stop, executed)
        if event is BARRIER:
            executed.barriers += gang.count
            waiting.append(gang)
        elif isinstance(event, Parted):
            ready += event.gangs
        elif event is None:
            ready.append(gang)
    return waiting


def _run(program: Program, gang: Gang, stop: int, executed: _Executed):
    """Run until an event, or (None) until the instruction number ``stop``."""
    steps, waves, lanes = program.steps, executed.waves, executed.lanes
    count = gang.count
    for _ in range(executed.steps, MOST_INSTRUCTIONS):
        executed.steps += 1
        place = gang.pc
        if place >= len(steps):
            raise SimulationError(f"{program.kernel.name} runs past its last instruction")
        waves[place] += count
        lanes[place] += gang.active
        gang.pc = place + 1
        gang.start_step()
        try:
            event = steps[place](gang)
        except SimulationError as error:
            error.args = (f"{program.kernel.name}, instruction {place} `{program.instructions[place]}`: {error}",)
            raise
        if event is not None:
            return event
        if gang.pc == stop:
            return None
    raise SimulationError(f"{program.kernel.name} executed {MOST_INSTRUCTIONS} instructions without an end")
