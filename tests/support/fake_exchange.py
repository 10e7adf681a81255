"""DLPack's exchange API of a library that is not there: its tensors say where they are, and have no memory.

It is set once in a process (``take_tensors``), so that tests run ``python -m fake_exchange``, which prints OK.
"""

import ctypes

from pysimd import registry

CUDA, ROCM, CPU = 2, 10, 1
FLOAT, BFLOAT = 2, 4


class Dtype(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class View(ctypes.Structure):
    """DLTensor."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("dtype", Dtype),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


VIEW_OF_OBJECT = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(View))


class Exchange(ctypes.Structure):
    """DLPackExchangeAPI, version 1."""

    _fields_ = (
        ("version", ctypes.c_uint32 * 2),
        ("prev_api", ctypes.c_void_p),
        ("others", ctypes.c_void_p * 3),
        ("view_of_object", VIEW_OF_OBJECT),
        ("current_stream", ctypes.c_void_p),
    )


class Tensor:
    """A tensor of float32 in C order."""

    def __init__(self, address, shape=(8, 4, 4), device=(CUDA, 0), dtype=(FLOAT, 32), **more):
        self.requires_grad = more.get("requires_grad", False)
        self.is_neg = lambda: more.get("negated", False)
        self.fails = more.get("fails", False)
        strides = more.get("strides") or tuple(_product(shape[i + 1 :]) for i in range(len(shape)))
        self.lengths = (ctypes.c_int64 * (2 * len(shape)))(*shape, *strides)
        first = ctypes.cast(self.lengths, ctypes.POINTER(ctypes.c_int64))
        second = ctypes.cast(ctypes.addressof(self.lengths) + 8 * len(shape), ctypes.POINTER(ctypes.c_int64))
        self.view = View(address, *device, len(shape), Dtype(*dtype, 1), first, second, more.get("byte_offset", 0))


def _product(lengths):
    count = 1
    for n in lengths:
        count *= n
    return count


@VIEW_OF_OBJECT
def view_of_object(tensor, out):
    if tensor.fails:
        return -1
    out[0] = tensor.view
    return 0


EXCHANGE = Exchange((1, 2), None, (None,) * 3, view_of_object, None)
FORWARD = {"_current_level": -1}


def taking_tensors():
    """The door, which takes these tensors from now on."""
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    door = registry.implementation("cpu").door
    later = Exchange((2, 0), None, (None,) * 3, view_of_object, None)
    for exchange, taken in ((later, False), (EXCHANGE, True), (EXCHANGE, True), (later, False)):
        capsule = new(ctypes.addressof(exchange), b"dlpack_exchange_api", None)
        assert door.take_tensors((Tensor,), capsule, FORWARD) is taken
    return door


def main() -> None:
    layouts = taking_tensors().layouts
    a, b, c, out = (Tensor(address) for address in (0x1000, 0x2000, 0x3000, 0x4000))
    key, device, addresses = layouts(a, b, None, None, "matmul")
    assert (device, addresses) == (0, [0x1000, 0x2000, 0, 0, 0, 0])
    assert layouts(a, b, c, out, "matmul")[2] == [0x1000, 0x2000, 0x3000, 0x4000, 0, 0]
    assert layouts(Tensor(0x1000 + 32), b, None, None, "matmul")[::2] == (key, [0x1020, 0x2000, 0, 0, 0, 0])
    assert layouts(Tensor(0x1000, device=(ROCM, 3)), b, None, None, "matmul")[1] == 3
    assert layouts(Tensor(0x1000, byte_offset=8), b, None, None, "matmul")[2][0] == 0x1008

    seen = {key}
    for other in (
        *((a, b, c, None, "matmul"), (a, b, None, out, "matmul"), (a, b, c, out, "matmul"), (a, b, None, None, "gemm")),
        *((Tensor(0x1000 + 16), b, None, None, "matmul"), (Tensor(0x1000, byte_offset=16), b, c, None, "matmul")),
        (Tensor(0x1000, device=(CUDA, 1)), b, None, None, "matmul"),
        (a, Tensor(0x2000, device=(CUDA, 1)), None, None, "matmul"),
        (Tensor(0x1000, dtype=(FLOAT, 64)), b, None, None, "matmul"),
        (Tensor(0x1000, dtype=(FLOAT, 16)), b, None, None, "matmul"),
        (Tensor(0x1000, dtype=(BFLOAT, 16)), b, None, None, "matmul"),
        (Tensor(0x1000, shape=(8, 4, 5)), b, None, None, "matmul"),
        (Tensor(0x1000, shape=(8, 1, 4, 4)), b, None, None, "matmul"),
        (Tensor(0x1000, strides=(16, 1, 4)), b, None, None, "matmul"),
        (Tensor(0x1000, strides=(0, 4, 1)), b, None, None, "matmul"),
    ):
        found = layouts(*other)[0]
        assert found is not None
        assert found not in seen
        seen.add(found)

    for refused in (
        *({"requires_grad": True}, {"negated": True}, {"fails": True}, {"device": (CPU, 0)}, {"shape": (1,) * 65}),
    ):
        x = Tensor(0x5000, **refused)
        for given in ((x, b, c, out), (a, x, c, out), (a, b, x, out), (a, b, c, x)):
            assert layouts(*given, "gemm")[0] is None, refused
    for other in (1, "text", [0x1000]):
        assert layouts(a, other, None, None, "matmul")[0] is None
    FORWARD["_current_level"] = 0
    assert layouts(a, b, None, None, "matmul")[0] is None
    print("OK")


if __name__ == "__main__":
    main()
