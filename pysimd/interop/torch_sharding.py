"""Sharding rules of ``torch.ops.pysimd.matmul`` and ``gemm`` for DTensor, registered when this module is imported.

A product may be sharded along the batch, the rows of A, or the columns of B, without communication; or along k, where
each process has a part of every sum: a ``Partial`` result, which torch.distributed adds when it is needed. 16-bit
results are not sharded along k, since each part would be rounded. Vectors are replicated.
"""

from __future__ import annotations

from pysimd.interop import extras

torch = extras.module("torch", "torch")
tensor = extras.module("torch.distributed.tensor", "torch")
experimental = extras.module("torch.distributed.tensor.experimental", "torch")
extras.module("pysimd.interop.torch", "torch")  # defines the operators

Partial, Replicate, Shard = tensor.Partial, tensor.Replicate, tensor.Shard


def _rules(given, k_is_summed: bool):
    """The placements of result and operands (a, b and c or None) that need no communication."""
    a, b, *rest = given
    rules = [([Replicate()], [None if x is None else Replicate() for x in given])]
    if a.ndim < 2 or b.ndim < 2:
        return rules
    c = rest[0] if rest else None
    rank = max(x.ndim for x in (a, b, c) if x is not None)
    shape = torch.broadcast_shapes(*(x.shape[:-2] for x in (a, b, c) if x is not None))

    def placed(x, dimension):
        """Sharded along a dimension of the result, numbered from its last, where the operand has it."""
        if x is None:
            return None
        own = x.ndim + dimension
        whole = own < 0 or x.shape[own] == 1
        return Replicate() if whole else Shard(own)

    tails = [c] if rest else []
    for dimension in range(-rank, -2):
        if shape[dimension + 2] > 1:
            rules.append(([Shard(rank + dimension)], [placed(x, dimension) for x in (a, b, *tails)]))
    rules.append(([Shard(rank - 2)], [Shard(a.ndim - 2), Replicate(), *(placed(x, -2) for x in tails)]))
    rules.append(([Shard(rank - 1)], [Replicate(), Shard(b.ndim - 1), *(placed(x, -1) for x in tails)]))
    if k_is_summed:
        parts = [Shard(a.ndim - 1), Shard(b.ndim - 2), *(None if x is None else Replicate() for x in tails)]
        rules.append(([Partial()], parts))
    return rules


def _is_wide(a, dtype) -> bool:
    return (dtype or a.tensor_meta.dtype) not in (torch.float16, torch.bfloat16)


@experimental.register_sharding(torch.ops.pysimd.matmul.default)
def _matmul(a, b, *, dtype=None):
    return _rules((a, b), _is_wide(a, dtype))


@experimental.register_sharding(torch.ops.pysimd.gemm.default)
def _gemm(a, b, *c, alpha=1.0, beta=0.0, dtype=None):
    added = bool(c) and c[0] is not None and beta != 0  # each process would add it
    return _rules((a, b, *c), _is_wide(a, dtype) and not added)
