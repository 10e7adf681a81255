"""A million 4x4 products in a compiled loop: ``pip install 'pysimd[numba]'``, ``python examples/numba_tiles.py``."""

import numba
import numpy as np

import pysimd
import pysimd.interop.numba

tile = pysimd.interop.numba.tile(
    "generic_f32_outer_4x4"
)  # any f32 or f64 outer product that pysimd.kernels("cpu") lists


@numba.njit
def chain(joints, hand):
    """hand = joints[0] @ joints[1] @ ... : each product needs the one before, so that no batch can hold them."""
    product = np.eye(4, dtype=np.float32)
    for i in range(joints.shape[0]):
        hand[:] = 0
        tile(product, joints[i], hand)
        product[:] = hand


def main() -> None:
    angles = np.random.default_rng(0).uniform(-0.1, 0.1, 1_000_000).astype(np.float32)
    joints = np.zeros((len(angles), 4, 4), np.float32)
    joints[:, 0, 0] = joints[:, 1, 1] = np.cos(angles)
    joints[:, 1, 0] = np.sin(angles)
    joints[:, 0, 1] = -joints[:, 1, 0]
    joints[:, 2, 2] = joints[:, 3, 3] = 1
    hand = np.empty((4, 4), np.float32)
    chain(joints, hand)
    turned = float(np.arctan2(hand[1, 0], hand[0, 0]))
    expected = float(angles.sum(dtype=np.float64))
    expected = float(np.arctan2(np.sin(expected), np.cos(expected)))
    print(f"{len(joints)} products in one call: turned by {turned:.3f}, expected {expected:.3f}")


if __name__ == "__main__":
    main()
