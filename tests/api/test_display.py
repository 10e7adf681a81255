"""What a terminal and a notebook show of the public objects, and which names they complete."""

import numpy as np

import pysimd

KERNEL = pysimd.kernel("generic_f32_outer_4x4")


def test_names_that_are_completed():
    assert dir(pysimd) == sorted(pysimd.__all__)


def test_a_printed_report_is_its_table():
    report = pysimd.compare([KERNEL, "generic_f32_inner_4x4"])
    assert str(report).splitlines()[0].split()[:3] == ["kernel", "form", "tile"]
    assert len(str(report).splitlines()) == 3
    assert report._repr_html_() == f"<pre>{report}</pre>"


def test_kernels_and_ratios_in_notebooks():
    assert KERNEL.ratio._repr_html_() == ("<b>2.00</b> multiply-adds per element loaded (16 / 8), 0.500 per byte")
    for kernel in pysimd.kernels():
        assert kernel._repr_html_().startswith(f"<b>{kernel.name}</b>: {kernel.mr} x {kernel.nr} tile, {kernel.form}, ")
        assert kernel.ratio._repr_html_() in kernel._repr_html_()


def test_a_bound_kernel_says_what_it_computes():
    bound = KERNEL.bind(*(np.ones(shape, np.float32) for shape in ((4, 7), (7, 4), (4, 4))))
    assert repr(bound) == "<bound generic_f32_outer_4x4: c += a @ b, products of 4 x 4 x 7 (m, n, k)>"
