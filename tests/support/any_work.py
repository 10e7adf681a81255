"""Small products on many threads."""

from pysimd.backends.cpu import dispatch
from pysimd.backends.cpu.implementation import CPU


def divide_any_work() -> None:
    """From now on ``threads=`` is the number of threads of any product of this process, however short."""
    limits = dispatch.limits()._replace(given_ns=0)
    dispatch.limits = lambda: limits
    CPU.door.set_limits(*limits)
