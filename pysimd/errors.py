"""The exceptions: every error of pysimd is a ``PysimdError`` and also the built-in class that fits it."""


class PysimdError(Exception):
    """Base of all errors raised on purpose by pysimd."""


class ShapeError(PysimdError, ValueError):
    """Shapes that do not agree, an operand with too few dimensions, an ``out`` that cannot hold the result."""


class DTypeError(PysimdError, TypeError):
    """A dtype that the kernel does not take, operands that are no arrays, arrays of different devices."""


class OptionError(PysimdError, ValueError):
    """A keyword or environment variable with a value that is not one of the allowed ones."""


class UnknownKernelError(PysimdError, LookupError):
    """No kernel of that name; the message names the closest."""


class UnavailableError(PysimdError, RuntimeError):
    """The kernel or backend exists, but not on this machine; the message says what is missing."""
