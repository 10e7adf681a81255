"""Registers that the multiply-adds of CUDA machine code read: two ports, of even and odd ones, and the reuse cache."""

import re

_REGISTER = re.compile(r"-?\|?R(\d+)")


def same_port(loop):
    """FFMA instructions of a loop, and those of them that read two registers of one port. A register that the
    instruction before kept in the same operand (``.reuse``) is not read."""
    multiply_adds = [x for x in loop if x.name.startswith("FFMA")]
    kept: dict[int, int] = {}
    conflicts = 0
    for x in multiply_adds:
        operands = [operand.strip() for operand in x.operands.split(",")][1:4]
        registers = {i: int(found[1]) for i, operand in enumerate(operands) if (found := _REGISTER.match(operand))}
        ports = [register % 2 for register in {r for i, r in registers.items() if kept.get(i) != r}]
        conflicts += max(ports.count(0), ports.count(1)) > 1
        kept = {i: register for i, register in registers.items() if "reuse" in operands[i]}
    return len(multiply_adds), conflicts
