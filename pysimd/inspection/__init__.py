"""``inspect``: the loop of a kernel as it was really built, disassembled and counted.

One module per disassembler: ``x86`` reads the code of the running process, ``compiled`` what clang makes of the kernels
of Arm and RISC-V, ``nvidia`` what NVRTC compiles (``cuda_rungs``: for the ladder), ``amd`` what clang or hiprtc
compile. All give ``Line`` objects to ``Inspection``, which counts them in one way.
"""

from __future__ import annotations

from pysimd import arguments, registry
from pysimd.inspection.counts import Inspection, Line
from pysimd.microkernel import MicroKernel, Rung

__all__ = ["Inspection", "Line", "inspect"]


def inspect(kernel, *, target: str | None = None) -> Inspection:
    """The hot loop of a kernel or of a rung of the ladder, from its machine code: counts, registers, annotated
    disassembly.

    The instance that packed or aligned operands take is read. CPU kernels and rungs of x86-64 are read from the running
    process (``pip install 'pysimd[inspect]'``) on any such machine, whether or not it can run them. Those of Arm and
    RISC-V are compiled by clang 19 or newer; where vectors have the processor's length, counts are for a tile of
    ``kernel.nr`` columns. Kernels of GPUs are compiled for ``target``, which needs no GPU: CUDA by NVRTC
    (``pip install 'pysimd[cuda-test]'``), HIP by clang 19 or newer (or ``pip install 'pysimd[simulate]'``).

    Args:
        kernel: a ``MicroKernel``, a ``Rung``, or the name of one.
        target: ``sm_75``, ``sm_90``, ... or ``gfx906``, ``gfx942``, ...; by default the GPU of this machine, else
            sm_90, and gfx942 or (for the matrix cores of RDNA) gfx1100. CPU kernels are built for one target; of
            a rung of the CPU ladder the code that runs here is read.

    Raises:
        UnknownKernelError: a name that is none.
        OptionError: a target that the kernel cannot be compiled for.
        UnavailableError: a disassembler or compiler is missing; the message says which, and what to install.
    """
    if not isinstance(kernel, MicroKernel | Rung):
        kernel = registry.kernel_or_rung(kernel)
    if target is not None:
        arguments.text("target", target)
    if isinstance(kernel, Rung) and kernel.backend == "cuda":
        from pysimd.inspection import cuda_rungs as reader
    elif kernel.backend == "cpu":
        from pysimd.inspection import compiled as reader

        if isinstance(kernel, Rung) or not reader.is_read(kernel):
            from pysimd.inspection import x86 as reader
    elif kernel.backend == "cuda":
        from pysimd.inspection import nvidia as reader
    else:
        from pysimd.inspection import amd as reader
    return reader.inspect(kernel, target)
