"""One module per backend, each with ``backend()``, ``kernels()``, ``call``, ``bind`` and ``matmul``."""
