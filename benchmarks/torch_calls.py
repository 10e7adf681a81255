"""What a call on torch's tensors costs: torch's own product, as a function and as an operator called by its name,
``torch.ops.pysimd.matmul``, and ``pysimd.matmul``.

    python benchmarks/torch_calls.py --out benchmarks/results/torch_calls.json     needs pip install -e '.[torch]'

On a GPU (``--device cuda``) it is the time until the calls return, without that of the products.
"""

from __future__ import annotations

import operator
from functools import partial

import record
import torch

import pysimd
import pysimd.interop.torch
from pysimd import registry
from pysimd.backends.cuda.implementation import INSTANCES
from pysimd.bench import timing
from pysimd.interop import torch_dispatch

CASES = {"one 4x4": (1, 4), "100 x 4x4": (100, 4), "10000 x 4x4": (10_000, 4), "100 x 32x32": (100, 32)}


ROW_MAJOR = (1, 4, 4), (16, 4, 1)
"""Shape and strides of one 4x4."""


def generated_empty():
    """What the generated code of torch.compile makes tensors with, private to torch."""
    return torch._C._dynamo.guards._empty_strided_cpu


def empty_kernel():
    """An operator of torch whose kernel on the CPU is a function of Python that returns its operand."""
    library = torch.library.Library("pysimd_bench", "DEF")
    library.define("empty(Tensor(a) x, Tensor y) -> Tensor(a)")
    library.impl("empty", lambda x, y: x, "CPU")
    library.impl("empty", lambda x, y: x, "AutogradCPU")
    return library, torch.ops.pysimd_bench.empty


def callable_object(call):
    """An object of a Python class that calls a function of C, as torch.ops.pysimd.matmul is."""
    return type("Callable", (), {"__call__": call})()


def parts(options) -> dict[str, float]:
    """Microseconds of what calls for one 4x4 consist of, on the CPU."""
    a, b, out = (torch.randn(1, 4, 4) for _ in range(3))
    _library, empty = empty_kernel()
    door, seen_by = registry.implementation("cpu").door, torch_dispatch.observers()
    unasked, asked = (door.operator((torch.Tensor,), x, None, None) for x in ((), seen_by))
    calls = {
        "torch.bmm": partial(torch.bmm, a, b),
        "torch.empty_like": partial(torch.empty_like, a),
        "torch.empty_strided": partial(torch.empty_strided, *ROW_MAJOR),
        "torch.empty_strided as torch's generated code calls it": partial(generated_empty(), *ROW_MAJOR, torch.float32),
        "torch.from_numpy": partial(torch.from_numpy, a.numpy()),
        "an operator with an empty kernel in Python": partial(empty, a, b),
        "an object whose class calls an empty function of C": partial(callable_object(operator.is_), a, b),
        "torch.ops.pysimd.matmul": partial(callable_object(asked), a, b),
        "torch.ops.pysimd.matmul without the questions who observes": partial(callable_object(unasked), a, b),
        "pysimd.matmul": partial(pysimd.matmul, a, b),
        "pysimd.matmul(out=), which makes no tensor": partial(pysimd.matmul, a, b, out=out),
        "pysimd.matmul of NumPy arrays": partial(pysimd.matmul, a.numpy(), b.numpy()),
    }
    runs = {key: timing.repeated(call) for key, call in calls.items()}
    times = timing.times(runs, timing.HostClock(), seconds=options.seconds)
    return {key: found.best_ns / 1000 for key, found in times.items()}


class LaunchClock(timing.HostClock):
    """The time until calls on a GPU return, from an idle GPU on; few calls, so that they do not fill its queue."""

    most_calls = 200

    def ns(self, run: timing.Run, calls: int) -> float:
        torch.cuda.synchronize()
        return super().ns(run, calls)


def main() -> None:
    parser = record.parser(__doc__)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--seconds", type=float, default=0.5, help="time given to each call (0.5)")
    options = parser.parse_args()
    torch.set_num_threads(1)
    clock = LaunchClock() if options.device == "cuda" else timing.HostClock()
    rows = []
    for name, (batch, n) in CASES.items():
        for dtype in (torch.float32, torch.bfloat16):
            a, b = (torch.randn(batch, n, n, device=options.device).to(dtype) for _ in range(2))
            grad = a.clone().requires_grad_()
            calls = {
                "torch.bmm": partial(torch.bmm, a, b),
                "torch.ops.aten.bmm": partial(torch.ops.aten.bmm, a, b),
                "torch.ops.pysimd.matmul": partial(torch.ops.pysimd.matmul, a, b),
                "pysimd.matmul": partial(pysimd.matmul, a, b),
                "torch.bmm, recorded": partial(torch.bmm, grad, b),
                "torch.ops.pysimd.matmul, recorded": partial(torch.ops.pysimd.matmul, grad, b),
            }
            for call in calls.values():  # compiles what runs below
                call()
            INSTANCES.wait()
            runs = {key: timing.repeated(call) for key, call in calls.items()}
            times = timing.times(runs, clock, seconds=options.seconds)
            us = {key: found.best_ns / 1000 for key, found in times.items()}
            rows.append({"case": name, "dtype": str(dtype).removeprefix("torch."), "us": us})
            record.progress(f"{name} {dtype}: {us}")
    machine = record.gpu() if options.device == "cuda" else record.cpu()
    made_of = {} if options.device == "cuda" else {"parts_us": parts(options)}
    record.write(machine, options.out, versions={"torch": torch.__version__}, rows=rows, **made_of)


if __name__ == "__main__":
    main()
