"""The types families of the kernels: what A, B and C hold, and how a NumPy dtype is recognised."""

from dataclasses import dataclass
from functools import cache

import numpy as np

from pysimd.errors import DTypeError


@dataclass(frozen=True)
class Types:
    """One types family: its name, dtype names of A, B and C, and the accumulator's unit round-off (0 for integers)."""

    name: str
    a: str
    b: str
    c: str
    roundoff: float


FAMILIES = {
    t.name: t
    for t in (
        Types("f32", "float32", "float32", "float32", 2.0**-24),
        Types("f64", "float64", "float64", "float64", 2.0**-53),
        Types("f16", "float16", "float16", "float16", 2.0**-11),
        Types("f16f32", "float16", "float16", "float32", 2.0**-24),
        Types("bf16f32", "bfloat16", "bfloat16", "float32", 2.0**-24),
        Types("i8i32", "int8", "int8", "int32", 0.0),
        Types("u8i8i32", "uint8", "int8", "int32", 0.0),
    )
}


@cache
def dtype_of(name: str) -> np.dtype:
    """The NumPy dtype of that name; bfloat16 is ``ml_dtypes.bfloat16``, or uint16 where ml_dtypes is not installed."""
    if name != "bfloat16":
        return np.dtype(name)
    try:
        import ml_dtypes
    except ImportError:
        return np.dtype("uint16")
    return np.dtype(ml_dtypes.bfloat16)


def accepts(name: str, dtype: np.dtype) -> bool:
    """Whether an array of ``dtype`` is accepted as ``name``; for bfloat16 also uint16, which holds its bits."""
    if not dtype.isnative:
        return False
    return dtype.name == name or (name == "bfloat16" and dtype.name == "uint16")


def check(family: Types, a: np.dtype, b: np.dtype) -> None:
    """Raise ``DTypeError`` unless A and B have the dtypes of ``family``."""
    if accepts(family.a, a) and accepts(family.b, b):
        return
    bits = " (uint16 arrays holding bfloat16 bits are taken too)" if family.a == "bfloat16" else ""
    raise DTypeError(
        f"{family.name} kernels take a of {family.a} and b of {family.b}{bits}, got {describe(a)} and {describe(b)}: "
        "convert with .astype(), or choose another kernel (pysimd.kernels())"
    )


def result_of(family: Types, a: np.dtype, out: np.dtype | None, narrow: bool) -> np.dtype:
    """The dtype of the result: float32 of 16-bit operands is rounded to their own type where that is the type of
    ``out`` and ``narrow``, so that the backend can do it."""
    half = family.a in ("float16", "bfloat16") and accepts(family.a, a)
    return a if narrow and half and a == out else dtype_of(family.c)


@cache
def family_of(a: np.dtype, b: np.dtype, offered: tuple[str, ...]) -> Types:
    """The family that multiplies these two dtypes, among those ``offered`` by a backend; raises ``DTypeError``."""
    for name in offered:
        family = FAMILIES[name]
        if a.name == family.a and b.name == family.b and a.isnative and b.isnative:
            return family
    pairs = ", ".join(f"{FAMILIES[n].a} @ {FAMILIES[n].b} -> {FAMILIES[n].c}" for n in offered)
    hint = "; for bfloat16 bits in uint16 name a kernel: kernel='..._bf16f32_...'" if a.name == "uint16" else ""
    raise DTypeError(
        f"no kernel multiplies {describe(a)} by {describe(b)}; there are {pairs}{hint}. Convert with .astype()"
    )


def describe(dtype: np.dtype) -> str:
    """The dtype's name, with the byte order where it is not the machine's."""
    return dtype.name if dtype.isnative else f"byte-swapped {dtype.name}"


def float32_of_bits(bits):
    """float32 values of bfloat16 bits, exactly; ``bits`` is a uint16 array of NumPy or of CuPy."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def bits_of_float32(x):
    """bfloat16 bits (uint16) of a float32 array of NumPy or of CuPy, rounded towards zero."""
    return (x.view(np.uint32) >> 16).astype(np.uint16)


def widened(x, dtype):
    """A copy of ``x`` (NumPy or CuPy) as ``dtype``; uint16 stands for bfloat16 bits."""
    if x.dtype.name in ("bfloat16", "uint16"):
        x = float32_of_bits(x.view(np.uint16))
    return x.astype(dtype)
