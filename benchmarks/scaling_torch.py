"""Products on the GPUs of one machine by torch.distributed: ``torch.ops.pysimd.matmul`` of DTensors over NCCL, and
the same on one GPU in the same run.

    torchrun --nproc-per-node 2 benchmarks/scaling_torch.py --out benchmarks/results/scaling_torch_2_h200.json

Batches and squares whose shards are on their GPUs; squares whose operands start on the first GPU. Times are those of
the whole group, between two barriers. ``--device cpu`` runs the same over gloo, to try it.
"""

from __future__ import annotations

import math
import os
import runpy
import statistics
import time
from collections.abc import Callable

import record
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor

import pysimd
import pysimd.interop.torch_sharding  # noqa: F401, defines the rules
from pysimd.backends.cuda.implementation import INSTANCES

BATCHES = (4, 8, 16, 32, 64, 128)
ELEMENTS = 3 << 29
"""Of an operand of a batch."""
SQUARES = (8192, 16384)
EXAMPLE = record.ROOT / "examples" / "cuda" / "several_gpus.py"
matmul = torch.ops.pysimd.matmul


class Group:
    """The processes, one on each device, and the clock that they share."""

    def __init__(self, device: str, rounds: int):
        self.rank, self.size, self.rounds = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), rounds
        self.device = torch.device(device, self.rank if device == "cuda" else None)
        if device == "cuda":
            torch.cuda.set_device(self.device)
        dist.init_process_group("cpu:gloo,cuda:nccl" if device == "cuda" else "gloo")
        self.mesh = init_device_mesh(device, (self.size,))

    def _wait(self) -> None:
        """Until all processes are here and their devices idle."""
        if self.device.type == "cuda":
            torch.cuda.synchronize()
        dist.all_reduce(torch.zeros(1))

    def _time(self, run: Callable[[], object], calls: int) -> float:
        self._wait()
        start = time.perf_counter()
        for _ in range(calls):
            run()
        self._wait()
        return (time.perf_counter() - start) / calls

    def seconds(self, runs: dict[str, Callable[[], object]], span: float = 0.05) -> dict[str, float]:
        """The median time of a call of each run, as rank 0 sees it; of interleaved rounds of ``span`` seconds."""
        for run in runs.values():
            self._time(run, 3)
        INSTANCES.wait()
        calls = {}
        for name, run in runs.items():
            needed = torch.tensor([math.ceil(span / self._time(run, 2))])
            dist.broadcast(needed, 0)
            calls[name] = int(needed)
        found: dict[str, list[float]] = {name: [] for name in runs}
        for _ in range(self.rounds):
            for name, run in runs.items():
                found[name].append(self._time(run, calls[name]))
        return {name: statistics.median(times) for name, times in found.items()}

    def alone(self, run: Callable[[], object]) -> Callable[[], object]:
        """``run`` by the first process; the others wait."""
        return run if self.rank == 0 else lambda: None


def shard(group: Group, shape: tuple[int, ...], dtype, placement) -> DTensor:
    """A random DTensor, made where its shards are."""
    local = list(shape)
    if isinstance(placement, Shard):
        local[placement.dim] //= group.size
    made = torch.randn(local, device=group.device, dtype=dtype)
    return DTensor.from_local(made, group.mesh, [placement], run_check=False)


def same(whole, sharded: DTensor, dim: int) -> None:
    """Raise unless the first shard, of equal operands, has the bits of one process."""
    part = sharded.to_local()
    assert torch.equal(whole.narrow(dim, 0, part.shape[dim]), part)


def resident(group: Group, shape_a, shape_b, dtype, ours, theirs, name: str) -> dict:
    """Operands whose shards are where they are multiplied; the result is sharded too, its sum over k taken."""
    a, b = shard(group, shape_a, dtype, ours), shard(group, shape_b, dtype, theirs)
    summed = ours == Shard(len(shape_a) - 1)
    runs: dict[str, Callable[[], object]] = {
        "sharded": lambda: matmul(a, b).redistribute(placements=[Shard(0)]) if summed else matmul(a, b)
    }
    runs["one"] = lambda: None
    if group.rank == 0:
        x, y = (torch.randn(shape, device=group.device, dtype=dtype) for shape in (shape_a, shape_b))
        for full, t in ((x, a), (y, b)):
            full[tuple(slice(n) for n in t.to_local().shape)] = t.to_local()
        runs["one"] = lambda: matmul(x, y)
        if len(shape_a) > 2:
            whole = matmul(x, y)
            sharded = matmul(a, b)
            same(whole, sharded, 0)
            del whole, sharded
    elif len(shape_a) > 2:
        matmul(a, b)
    return row(group, name, dtype, group.seconds(runs))


def from_one(group: Group, n: int, dtype) -> list[dict]:
    """Operands on the first GPU, and the result too: by DTensor, and by the example's panels."""
    make = torch.randn if group.rank == 0 else torch.empty
    a, b = (make(n, n, device=group.device, dtype=dtype) for _ in range(2))

    def sharded():
        x, y = distribute_tensor(a, group.mesh, [Shard(0)]), distribute_tensor(b, group.mesh, [Replicate()])
        return matmul(x, y).full_tensor()

    runs = {"sharded": sharded, "one": group.alone(lambda: matmul(a, b))}
    rows = [row(group, f"{n} square, operands on one GPU", dtype, group.seconds(runs))]
    if group.device.type == "cuda":
        product = runpy.run_path(str(EXAMPLE))["product"]
        gpus = [torch.device("cuda", i) for i in range(group.size)]
        if group.rank == 0:
            torch.testing.assert_close(product(a, b, gpus), matmul(a, b), atol=1e-2, rtol=1e-3)
        runs = {"sharded": group.alone(lambda: product(a, b, gpus)), "one": group.alone(lambda: matmul(a, b))}
        rows.append(row(group, f"{n} square, operands on one GPU, sent in panels", dtype, group.seconds(runs)))
    return rows


def row(group: Group, name: str, dtype, seconds: dict[str, float]) -> dict:
    found = {"problem": name, "dtype": str(dtype).removeprefix("torch."), "seconds": seconds}
    found["speedup"] = seconds["one"] / seconds["sharded"]
    if group.rank == 0:
        record.progress(f"{name} {found['dtype']}: {seconds}, {found['speedup']:.2f} x")
    if group.device.type == "cuda":
        torch.cuda.empty_cache()
    return found


def measured(group: Group, least: int):
    """The rows, one after the other; sizes are divided by ``least``."""
    for n in BATCHES:
        count = ELEMENTS // (n * n) // least
        for dtype in (torch.float32, torch.bfloat16):
            name = f"{count} x {n}x{n}"
            yield resident(group, (count, n, n), (count, n, n), dtype, Shard(0), Shard(0), name)
    for n in (x // least for x in SQUARES):
        for dtype in (torch.float32, torch.bfloat16):
            yield resident(group, (n, n), (n, n), dtype, Shard(0), Replicate(), f"{n} square by rows")
        yield resident(group, (n, n), (n, n), torch.float32, Shard(1), Shard(0), f"{n} square along k")
        yield from from_one(group, n, torch.float32)


def topology() -> str:
    """How the GPUs are linked."""
    return record.output_of("nvidia-smi", "topo", "-m")


def main() -> None:
    parser = record.parser(__doc__)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--least", type=int, default=1, help="divide all sizes by this, to try the script (1)")
    parser.add_argument("--rounds", type=int, default=5, help="interleaved rounds, of which the median counts (5)")
    options = parser.parse_args()
    group = Group(options.device, options.rounds)
    rows = []
    for found in measured(group, options.least):
        rows.append(found)
        if group.rank == 0:  # what was measured is there, also if a later one does not end
            machine = record.gpu() if options.device == "cuda" else record.cpu()
            sections = {"gpus": group.size, "topology": topology(), "versions": {"torch": torch.__version__}}
            record.write(machine, options.out, **sections, rows=rows)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
