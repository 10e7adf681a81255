"""Branches, barriers, the end; and instructions that only say how to wait or to cache."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pysimd.simulator.assembly import Instruction
from pysimd.simulator.errors import LaunchError
from pysimd.simulator.gang import EXEC, VCC, Gang
from pysimd.simulator.instructions.base import Decoder, Machine, Step


class Event:
    """What a step returns when its gang cannot simply go on."""


class End(Event):
    """The waves are done."""


class Barrier(Event):
    """The waves wait until all others of their blocks have arrived."""


@dataclass(frozen=True)
class Parted(Event):
    """A branch that some waves take and others do not."""

    gangs: tuple[Gang, Gang]


END, BARRIER = End(), Barrier()


def _nothing(instruction: Instruction, machine: Machine) -> Step:
    """Waits, hints, cache control: no effect on values in a machine that finishes one instruction after the other."""
    return lambda g: None


def _end(instruction: Instruction, machine: Machine) -> Step:
    return lambda g: END


def _barrier(instruction: Instruction, machine: Machine) -> Step:
    return lambda g: BARRIER


def _barrier_signal(instruction: Instruction, machine: Machine) -> Step:
    def step(g):
        g.arrived = True

    return step


def _barrier_wait(instruction: Instruction, machine: Machine) -> Step:
    def step(g):
        if not g.arrived:
            raise LaunchError("s_barrier_wait without s_barrier_signal: the block would wait for ever")
        g.arrived = False
        return BARRIER

    return step


def _branch(condition: Callable[[Gang], np.ndarray]) -> Decoder:
    def decode(instruction, machine):
        target = instruction.target

        def step(g):
            taken = condition(g)
            g.require_defined("the way it goes")
            if taken.all():
                g.pc = target
            elif taken.any():
                going, staying = g.part(taken), g.part(~taken)
                going.pc = target
                return Parted((going, staying))

        return step

    return decode


def _always(g: Gang) -> np.ndarray:
    return np.ones(g.count, bool)


def _scc(g: Gang) -> np.ndarray:
    return g.read_scc()


def _vcc_is_zero(g: Gang) -> np.ndarray:
    return _is_zero(g, VCC)


def _exec_is_zero(g: Gang) -> np.ndarray:
    return _is_zero(g, EXEC)


def _is_zero(g: Gang, index: int) -> np.ndarray:
    return (g.read_s(index) if g.lanes == 32 else g.read_s64(index)) == 0


_SILENT = """
s_nop s_clause s_delay_alu s_inst_prefetch s_set_inst_prefetch_distance s_sendmsg s_setprio s_sleep s_waitcnt
s_waitcnt_depctr s_waitcnt_vscnt s_waitcnt_vmcnt s_waitcnt_lgkmcnt s_waitcnt_expcnt s_wait_loadcnt s_wait_storecnt
s_wait_dscnt s_wait_kmcnt s_wait_alu s_wait_idle s_wait_loadcnt_dscnt s_wait_storecnt_dscnt s_wait_expcnt
s_wait_samplecnt s_wait_bvhcnt buffer_gl0_inv buffer_gl1_inv buffer_wbl2 buffer_inv buffer_wbinvl1
buffer_wbinvl1_vol global_wb global_inv global_wbinv s_dcache_inv s_icache_inv s_code_end
"""

TABLE: dict[str, Decoder] = {
    **dict.fromkeys(_SILENT.split(), _nothing),
    "s_endpgm": _end,
    "s_barrier": _barrier,
    "s_barrier_signal": _barrier_signal,
    "s_barrier_wait": _barrier_wait,
    "s_branch": _branch(_always),
    "s_cbranch_scc0": _branch(lambda g: ~_scc(g)),
    "s_cbranch_scc1": _branch(_scc),
    "s_cbranch_vccz": _branch(_vcc_is_zero),
    "s_cbranch_vccnz": _branch(lambda g: ~_vcc_is_zero(g)),
    "s_cbranch_execz": _branch(_exec_is_zero),
    "s_cbranch_execnz": _branch(lambda g: ~_exec_is_zero(g)),
}
