"""The command ``pysimd``."""

from pysimd.cli.command import main

__all__ = ["main"]
