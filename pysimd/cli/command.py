"""The command ``pysimd``. Data goes to standard output, warnings and progress to standard error.

Exit codes: 0; 1 for what this machine or the data do not allow; 2 for a wrong command line; 130 after Ctrl-C; 141 when
the reader of standard output has closed it.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from pysimd._version import __version__
from pysimd.cli import bench, kernels, ladder, overview, peaks, ratio, report, run, show, source
from pysimd.cli.options import add_json
from pysimd.cli.output import fail, write_ascii_where_needed
from pysimd.errors import OptionError, PysimdError, UnknownKernelError

COMMANDS = {
    "kernels": kernels,
    "run": run,
    "ratio": ratio,
    "report": report,
    "peaks": peaks,
    "show": show,
    "bench": bench,
    "ladder": ladder,
    "source": source,
}
"""Modules with ``HELP``, ``add_arguments(parser)`` and ``execute(options)``, which returns the exit code."""

_USAGE_ERRORS = (OptionError, UnknownKernelError)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line ``argv`` (``sys.argv[1:]`` by default) and return its exit code."""
    write_ascii_where_needed(sys.stdout)
    write_ascii_where_needed(sys.stderr)
    try:
        options = _parser().parse_args(argv)
        code = options.execute(options)
        sys.stdout.flush()
        return code
    except PysimdError as error:
        return fail(error, 2 if isinstance(error, _USAGE_ERRORS) else 1)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # so that the interpreter's last flush succeeds
        return 141
    except OSError as error:
        return fail(f"{error.filename}: {error.strerror}" if error.filename else error, 1)
    except MemoryError as error:
        return fail(f"not enough memory: {error}", 1)
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="pysimd",
        description="SIMD microkernels for small matrix products. Without a command: an overview of this machine.",
    )
    parser.add_argument("--version", action="version", version=f"pysimd {__version__}")
    parser.set_defaults(execute=overview.execute)
    add_json(parser, False)
    overview.add_arguments(parser)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for name, module in COMMANDS.items():
        sub = commands.add_parser(name, help=module.HELP, description=module.HELP[0].upper() + module.HELP[1:] + ".")
        sub.set_defaults(execute=module.execute)
        add_json(sub, argparse.SUPPRESS)
        module.add_arguments(sub)
    return parser
