"""One set of values in many memory layouts: every function returns a new array equal to its argument (``same_`` ones
excepted, which keep some of its values) whose memory is laid out in its own way. Gaps hold NaN or 0x7f bytes: a kernel
that strays into them gives a wrong result."""

import numpy as np


def _filled(shape, dtype) -> np.ndarray:
    """NaN for floats (0x7fff.. or 0xffff.. patterns are NaN too), 127 or 255 for integers."""
    buffer = np.full(int(np.prod(shape)) * dtype.itemsize, 0xFF, np.uint8)
    return buffer.view(dtype).reshape(shape)


def contiguous(x):
    return x.copy(order="C")


def fortran(x):
    """The first index runs fastest, through the batch dimensions too."""
    return x.copy(order="F")


def transposed(x):
    """Every matrix stored column by column."""
    return x.swapaxes(-1, -2).copy(order="C").swapaxes(-1, -2)


def sliced(x):
    """Every second row, every third column, of a larger array."""
    big = _filled((*x.shape[:-2], 2 * x.shape[-2] + 1, 3 * x.shape[-1] + 1), x.dtype)
    view = big[..., 1 : 1 + 2 * x.shape[-2] : 2, 1 : 1 + 3 * x.shape[-1] : 3]
    view[...] = x
    return view


def every_other(x):
    """Every second column of a larger array."""
    big = _filled((*x.shape[:-1], 2 * x.shape[-1]), x.dtype)
    view = big[..., ::2]
    view[...] = x
    return view


def padded_rows(x):
    """Adjacent columns with a leading dimension larger than the row."""
    big = _filled((*x.shape[:-1], x.shape[-1] + 5), x.dtype)
    view = big[..., 2 : 2 + x.shape[-1]]
    view[...] = x
    return view


def negative(x):
    """Every dimension runs backwards."""
    backwards = (slice(None, None, -1),) * x.ndim
    return x[backwards].copy(order="C")[backwards]


def negative_rows(x):
    """Rows run backwards, columns forwards."""
    return x[..., ::-1, :].copy(order="C")[..., ::-1, :]


def misaligned(x):
    """The base address is one byte off, the strides are those of a contiguous array."""
    buffer = np.full(x.nbytes + 1, 0xFF, np.uint8)
    view = buffer[1:].view(x.dtype).reshape(x.shape)
    view[...] = x
    return view


def fractional_strides(x):
    """A field of packed records: the strides are no multiple of the element size."""
    records = np.zeros(x.shape, np.dtype([("before", "u1"), ("x", x.dtype)]))
    records["x"][...] = x
    return records["x"]


def read_only(x):
    x = x.copy()
    x.flags.writeable = False
    return x


def same_rows(x):
    """One row repeated by stride 0."""
    return np.broadcast_to(x[..., :1, :], x.shape)


def same_columns(x):
    """One column repeated by stride 0."""
    return np.broadcast_to(x[..., :, :1], x.shape)


def same_everywhere(x):
    """One element, all strides 0."""
    return np.broadcast_to(x.flat[0], x.shape) if x.size else x


OPERANDS = (
    contiguous,
    fortran,
    transposed,
    sliced,
    padded_rows,
    negative,
    negative_rows,
    misaligned,
    fractional_strides,
    read_only,
    same_rows,
    same_columns,
    same_everywhere,
)

RESULTS = tuple(x for x in OPERANDS if x is not read_only and not x.__name__.startswith("same"))
"""Layouts that can be written to without writing an element twice."""
