"""Why the simulator stops: each is a fault of the code that runs, or something that the simulator does not model."""

from pysimd.errors import PysimdError


class SimulationError(PysimdError):
    """Base of what can happen while machine code is read or run; the message names the instruction."""


class CompileError(SimulationError):
    """The compiler refuses the source; the message holds the compiler's own text."""


class UnsupportedInstruction(SimulationError):
    """An instruction, an operand or a modifier whose meaning is not written down here. It is never guessed."""


class AccessError(SimulationError):
    """A load or store outside every buffer, misaligned, or into a read-only buffer."""


class RaceError(SimulationError):
    """Two waves touch the same byte, one of them writes it, and no barrier lies between."""


class UndefinedRead(SimulationError):
    """A register or a byte of LDS is read that nothing has written."""


class LaunchError(SimulationError, ValueError):
    """A launch that the kernel does not allow: unknown name, wrong argument size, block or LDS too large."""
