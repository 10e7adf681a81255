"""``python -m process_group RANK FILE DEVICE SIZE``: one of SIZE processes that multiply DTensors over gloo, or over
NCCL, each on a GPU of its own; prints OK. Then the last is killed before a sum over k is taken, and the others fail."""

import os
import signal
import sys
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor

import pysimd
import pysimd.interop.torch_sharding

matmul, gemm = torch.ops.pysimd.matmul, torch.ops.pysimd.gemm


def products(mesh):
    """Batch, rows, columns and k: the placement of the result, and its values."""
    torch.manual_seed(0)
    a, b = torch.randint(-9, 9, (6, 8, 10)).float(), torch.randint(-9, 9, (6, 10, 7)).float()
    expected = matmul(a, b)
    for ours, theirs, result in (
        (Shard(0), Shard(0), Shard(0)),
        (Shard(1), Replicate(), Shard(1)),
        (Replicate(), Shard(2), Shard(2)),
        (Shard(2), Shard(1), Partial()),
        (Replicate(), Replicate(), Replicate()),
    ):
        x, y = distribute_tensor(a, mesh, [ours]), distribute_tensor(b, mesh, [theirs])
        product = matmul(x, y)
        assert product.placements == (result,), (ours, theirs, product.placements)
        assert torch.equal(product.full_tensor(), expected)
        assert torch.equal(pysimd.matmul(x, y).full_tensor(), expected)
        half = matmul(x.bfloat16(), y.bfloat16())
        assert half.dtype == torch.bfloat16
        assert torch.equal(half.full_tensor(), expected.bfloat16()), "one rounding"
    shared = matmul(distribute_tensor(a, mesh, [Shard(0)]), distribute_tensor(b[0], mesh, [Replicate()]))
    assert shared.placements == (Shard(0),)
    assert torch.equal(shared.full_tensor(), matmul(a, b[0]))


def sums(mesh):
    """gemm with a bias, which must be added once."""
    a, b, c = (torch.arange(float(m * n)).reshape(m, n) for m, n in ((4, 6), (6, 5), (1, 5)))
    expected = gemm(a, b, c, alpha=2.0, beta=-1.0)
    for ours, theirs in ((Shard(0), Replicate()), (Replicate(), Shard(1)), (Shard(1), Shard(0))):
        x, y = distribute_tensor(a, mesh, [ours]), distribute_tensor(b, mesh, [theirs])
        z = distribute_tensor(c, mesh, [Replicate()])
        assert torch.equal(gemm(x, y, z, alpha=2.0, beta=-1.0).full_tensor(), expected)
    assert gemm(x, y).placements == (Partial(),)


def gradients(mesh):
    a, b = torch.randn(6, 8, 10), torch.randn(10, 7)
    dist.broadcast(a, 0)
    dist.broadcast(b, 0)
    x = distribute_tensor(a, mesh, [Shard(0)]).requires_grad_()
    y = distribute_tensor(b, mesh, [Replicate()]).requires_grad_()
    matmul(x, y).sum().backward()
    a, b = a.requires_grad_(), b.requires_grad_()
    (a @ b).sum().backward()
    torch.testing.assert_close(x.grad.full_tensor(), a.grad)
    torch.testing.assert_close(y.grad.full_tensor(), b.grad)


def empty_shard(mesh):
    """A batch of one product less than there are processes: the last has none."""
    count = mesh.size() - 1
    a = torch.arange(20.0 * count).reshape(count, 4, 5)
    x, y = distribute_tensor(a, mesh, [Shard(0)]), distribute_tensor(a.mT, mesh, [Shard(0)])
    assert x.to_local().shape[0] == (dist.get_rank() < count)
    assert torch.equal(matmul(x, y).full_tensor(), matmul(a, a.mT))


def failures(mesh, rank):
    """A shard of another dtype, and meshes that do not fit."""
    y = distribute_tensor(torch.ones(4, 4), mesh, [Replicate()])
    local = torch.ones(2, 4, dtype=torch.float64 if rank else torch.float32)
    x = DTensor.from_local(local, mesh, [Shard(0)], run_check=False)
    try:
        matmul(x, y)
        refused = ""
    except Exception as error:  # torch decides on the class
        refused = str(error)
    assert ("no kernel multiplies torch.float64 by torch.float32" in refused) == bool(rank), refused
    other = init_device_mesh(mesh.device_type, (1, mesh.size()), mesh_dim_names=("outer", "inner"))
    try:
        matmul(y, distribute_tensor(torch.ones(4, 4), other, [Replicate(), Replicate()]))
        refused = ""
    except Exception as error:
        refused = str(error)
    assert "mesh" in refused, refused


def killed(mesh, rank):
    """A product along k, of which one process does not give its part."""
    x, y = distribute_tensor(torch.ones(4, 8), mesh, [Shard(1)]), distribute_tensor(torch.ones(8, 5), mesh, [Shard(0)])
    product = matmul(x, y)
    assert product.placements == (Partial(),)
    dist.barrier()
    if rank == mesh.size() - 1:
        os.kill(os.getpid(), signal.SIGKILL)
    print(product.full_tensor())


def main() -> None:
    rank, file, device, size = int(sys.argv[1]), *sys.argv[2:]
    backend, timeout = "gloo", timedelta(seconds=120)
    if device == "cuda":
        backend, timeout = "nccl", timedelta(seconds=15)
        torch.cuda.set_device(rank)
    torch.set_default_device(device)
    place = {"init_method": f"file://{file}", "rank": rank, "world_size": int(size)}
    dist.init_process_group(backend, **place, timeout=timeout)
    mesh = init_device_mesh(device, (int(size),))
    products(mesh)
    sums(mesh)
    gradients(mesh)
    empty_shard(mesh)
    failures(mesh, rank)
    print("OK", flush=True)
    killed(mesh, rank)


if __name__ == "__main__":
    main()
