"""The GPU GEMM ladder: whole products ``alpha A B + beta C``, each rung with one idea more than the one before."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from pysimd import registry, sources
from pysimd.errors import OptionError, UnavailableError
from pysimd.ratio import Ratio


@dataclass(frozen=True, eq=False)
class Rung:
    """One rung, called like ``gemm``.

    Attributes:
        number: its place, ``S0`` upwards.
        name: the kernel's, and its file's.
        backend: ``cuda``.
        types: types family, e.g. ``f32``.
        new: what it adds to the rung before.
        covers: the kernels of the documents behind the ladder that it says again, as (document, kernel).
        bm, bn: the tile of C that a block computes; ``bk`` steps of k come into shared memory at a time (None: none).
        tm, tn: elements of C for ``lanes`` threads together: one, or a warp or more on tensor cores.
        threads: threads of a block.
        ratio: multiply-adds of those beside the elements that they read for them, for one step of k.
        roundings: the error is at most ``(k + roundings) u |A| |B|``, with u the round-off of the sums' type.
        requires: the features the device must have.
        available: whether it can run on this machine.
        unavailable_reason: why not, and what to do; empty if available.
        source_path: the file that holds it, relative to the package's source folders.
    """

    number: str
    name: str
    backend: str
    types: str
    new: str
    covers: tuple[tuple[str, str], ...]
    bm: int
    bn: int
    bk: int | None
    tm: int
    tn: int
    lanes: int
    threads: int
    ratio: Ratio
    roundings: int
    requires: tuple[str, ...]
    available: bool
    unavailable_reason: str
    source_path: str
    _implementation: Any = field(repr=False)

    @cached_property
    def source(self) -> str:
        """Text of the source file; its header states step, contract, tile, registers and ratio."""
        return sources.read(self.source_path)

    @property
    def registers(self) -> int | None:
        """Registers of a thread in the code compiled for row-major, aligned operands; None without a GPU."""
        return self._implementation.resources(self).registers if self.available else None

    @property
    def shared_bytes(self) -> int | None:
        """Shared memory of a block in that code; None without a GPU."""
        return self._implementation.resources(self).shared_bytes if self.available else None

    @property
    def local_bytes(self) -> int | None:
        """Memory of a thread for what does not fit its registers in that code, 0 in every rung; None without a GPU."""
        return self._implementation.resources(self).local_bytes if self.available else None

    def __call__(self, a, b, c=None, *, alpha=1.0, beta=0.0, trans_a=False, trans_b=False, out=None):
        """Return ``alpha * a @ b + beta * c`` computed by this rung: ``pysimd.gemm(..., kernel=self)``.

        Row-major and transposed operands are read in place, a column-major ``out`` is the swapped call, and leading
        dimensions may be larger than rows. An operand with neither dimension adjacent in memory is copied first.

        Args:
            a, b, c, alpha, beta, trans_a, trans_b, out: as for ``gemm``; CuPy arrays, or CUDA exporters of DLPack.

        Returns:
            ``out``, or a new array of shape (..., m, n).

        Raises:
            ShapeError, DTypeError, OptionError: the operands do not fit; nothing was written.
            UnavailableError: this machine cannot run the rung.
        """
        from pysimd.gemm import gemm  # which looks up rungs

        return gemm(a, b, c, alpha=alpha, beta=beta, trans_a=trans_a, trans_b=trans_b, out=out, kernel=self)

    def _check_available(self) -> None:
        if not self.available:
            raise UnavailableError(f"{self.name} cannot run here: {self.unavailable_reason}")


def rungs(backend: str = "cuda") -> list[Rung]:
    """The ladder of a backend from its foot up, whether or not this machine can run it.

    Raises:
        OptionError: a backend without a ladder.

    >>> [rung.name for rung in pysimd.rungs()][:3]
    ['naive_uncoalesced', 'naive', 'smem_conflict']
    """
    if backend != "cuda":
        raise OptionError(f"backend {backend!r} has no ladder: there is one for 'cuda'")
    from pysimd.backends.cuda.ladder import rungs as cuda_ladder

    return list(cuda_ladder.rungs())


def rung(name: str) -> Rung:
    """The rung of that name.

    Raises:
        UnknownKernelError: no such rung; the message names the closest.

    >>> pysimd.rung("smem_dbuf").ratio.value
    4.0
    """
    return registry.named(name, rungs(), "rung", "pysimd.rungs() lists them all")


def kernel_or_rung(name: str) -> registry.MicroKernel | Rung:
    """The microkernel or the rung of that name; raises ``UnknownKernelError`` with the closest of both."""
    everything = [*registry.kernels(), *rungs()]
    return registry.named(name, everything, "kernel", "pysimd.kernels() and pysimd.rungs() list them all")


def best(types: str, operands) -> Rung | None:
    """The rung that ``gemm`` takes for checked operands on a CUDA device; None: ``matmul`` does them."""
    from pysimd.backends.cuda.ladder import rungs as cuda_ladder

    *batch, m, n = operands.shape
    return cuda_ladder.best(types, m, n, operands.a.shape[-1], math.prod(batch))


def replay(a, b, c, out, options, kernel: str | None):
    """What a call of ``gemm`` gives that was seen before with arrays that lie in the same way, else None, and the key
    by which it is kept."""
    from pysimd.backends.cuda.ladder import rungs as cuda_ladder

    return cuda_ladder.replay(a, b, c, out, options, kernel)
