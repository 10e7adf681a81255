"""Products of few rows or few columns: the kernel that is taken for the order in which the operands are stored."""

import itertools

import numpy as np
import pytest
from few_rows import chosen, row_of
from process import output_of
from pysimd._cpu import lib
from reference import check, check_factors, pair, random_result

import pysimd
from pysimd.backends.cpu import table

ROWS, COLUMNS, NEITHER = lib.PYSIMD_BY_ROWS, lib.PYSIMD_BY_COLUMNS, lib.PYSIMD_BY_NEITHER
AVX512 = any(k.target == "avx512" for k in pysimd.kernels("cpu", available=True))
VNNI = any(k.target == "avx512vnni" for k in pysimd.kernels("cpu", available=True))
needs_avx512 = pytest.mark.skipif(not AVX512, reason="no AVX-512 here")
needs_vnni = pytest.mark.skipif(not VNNI, reason="no AVX-512 VNNI here")
AMX = any(k.target == "amx" for k in pysimd.kernels("cpu", available=True))
needs_amx = pytest.mark.skipif(not AMX, reason="no AMX here")

HALVES = lib.pysimd_halves_avx512()
DIRECT = "avx512_f16f32_outer_16x16"  # direct.c, by columns
FOUR_COLUMNS = "avx2_f64_gemv_8x1" if HALVES else "avx512_f64_outer_14x16"
CHOSEN = {  # (types, m, k, n, order of A, order of B): kernel, unless few.inc has a row for a kind of processor
    ("f32", 2, 59, 2696, ROWS, ROWS): "avx512_f32_outer_4x96",
    ("f32", 4, 59, 192, COLUMNS, ROWS): "avx512_f32_outer_4x96",
    ("f64", 2, 116, 981, ROWS, ROWS): "avx512_f64_outer_4x48",
    ("f64", 4, 32, 96, NEITHER, ROWS): "avx512_f64_outer_4x48",
    ("f32", 828, 485, 4, COLUMNS, ROWS): "avx512_f32_outer_4x96",
    ("f32", 828, 485, 12, COLUMNS, ROWS): "avx512_f32_outer_14x32",
    ("f64", 267, 559, 2, COLUMNS, COLUMNS): "avx512_f64_outer_4x48",
    ("f64", 34, 1479, 2, COLUMNS, ROWS): "avx512_f64_outer_4x48",
    ("f32", 97, 288, 4, COLUMNS, ROWS): "avx512_f32_outer_4x96",
    ("f32", 45, 970, 6, COLUMNS, ROWS): "avx512_f32_outer_14x32",
    ("f16f32", 472, 218, 6, COLUMNS, ROWS): DIRECT,
    ("f64", 2, 2777, 200, ROWS, ROWS): "avx512_f64_gemv_8x1",  # many more terms than columns
    ("f16f32", 45, 3923, 4, COLUMNS, ROWS): DIRECT,
    ("f16f32", 2, 900, 900, ROWS, ROWS): "avx512_f16f32_gemv_16x1",
    ("f16f32", 201, 3923, 4, COLUMNS, ROWS): "avx512_f16f32_gemv_16x1",
    ("bf16f32", 201, 373, 4, COLUMNS, ROWS): "avx512_bf16f32_gemv_16x1",
    ("f32", 4096, 4096, 8, COLUMNS, ROWS): "avx512_f32_outer_14x32",
    ("f32", 3000, 80, 16, COLUMNS, ROWS): "avx512_f32_outer_14x32",
    ("f32", 53, 27, 3, COLUMNS, ROWS): "avx512_f32_outer_8x8",
    ("f16f32", 58, 13, 3, COLUMNS, NEITHER): "avx512_f16f32_outer_8x8",
    ("f16f32", 256, 64, 2, COLUMNS, COLUMNS): "avx512_f16f32_outer_8x8",
    ("f16f32", 58, 65, 3, COLUMNS, ROWS): DIRECT,
    ("f16f32", 58, 64, 3, COLUMNS, ROWS): "avx512_f16f32_outer_8x8",
    ("f32", 257, 20, 3, COLUMNS, ROWS): "avx512_f32_gemv_16x1",
    ("f32", 257, 15, 3, COLUMNS, ROWS): "avx512_f32_gemv_16x1",
    ("f32", 95, 15, 3, COLUMNS, ROWS): "avx512_f32_outer_8x8",
    ("f32", 32, 4, 3, COLUMNS, ROWS): "avx512_f32_gemv_16x1",
    ("f32", 32, 16, 2, COLUMNS, ROWS): "avx512_f32_gemv_16x1",
    ("bf16f32", 32, 17, 2, COLUMNS, ROWS): "avx512_bf16f32_outer_8x8",
    ("f32", 257, 15, 4, COLUMNS, ROWS): "avx512_f32_gemv_16x1",
    ("f32", 2213, 50, 3, COLUMNS, ROWS): "avx512_f32_gemv_16x1",
    ("bf16f32", 64, 16, 2, COLUMNS, ROWS): "avx512_bf16f32_gemv_16x1",
    ("f64", 1, 400, 400, ROWS, ROWS): "avx512_f64_gemv_8x1",
    ("f64", 1, 400, 32, ROWS, ROWS): "avx512_f64_gemv_8x1",
    ("f64", 1, 64, 17, ROWS, ROWS): "avx512_f64_gemv_8x1",
    ("f64", 1, 65, 17, ROWS, ROWS): "avx2_f64_gemv_8x1",
    ("f64", 1, 64, 7, ROWS, ROWS): "avx512_f64_gemv_8x1",
    ("f64", 1, 63, 7, ROWS, ROWS): "avx2_f64_gemv_8x1",
    ("f64", 1, 8, 9, ROWS, ROWS): "avx512_f64_gemv_8x1",
    ("f64", 1, 400, 400, ROWS, COLUMNS): "avx2_f64_gemv_8x1",
    ("f32", 64, 400, 1, COLUMNS, ROWS): "avx512_f32_gemv_16x1",
    ("f32", 64, 400, 1, ROWS, ROWS): "avx2_f32_gemv_8x1",
    ("f32", 4, 16, 400, ROWS, ROWS): "avx512_f32_gemv_16x1",  # in registers
    ("f32", 4, 17, 400, ROWS, ROWS): "avx512_f32_outer_4x96",
    ("f32", 2, 6, 400, ROWS, ROWS): "avx512_f32_outer_4x96",
    ("f16f32", 2, 33, 1000, ROWS, ROWS): "avx512_f16f32_gemv_16x1",
    ("f32", 58, 13, 3, ROWS, ROWS): "avx2_f32_gemv_8x1",
    ("f32", 8, 15, 4, COLUMNS, ROWS): "avx2_f32_gemv_8x1" if HALVES else "avx512_f32_outer_8x8",
    ("f32", 16, 64, 3, ROWS, ROWS): "avx2_f32_gemv_8x1" if HALVES else "avx512_f32_outer_8x8",
    ("f32", 16, 64, 3, ROWS, COLUMNS): "avx2_f32_gemv_8x1",  # dot products
    ("f32", 17, 30, 3, ROWS, COLUMNS): "avx2_f32_gemv_8x1",
    ("f32", 17, 17, 3, ROWS, ROWS): "avx2_f32_gemv_8x1",
    ("f16f32", 32, 32, 4, ROWS, ROWS): "avx2_f16f32_gemv_8x1" if HALVES else "avx512_f16f32_outer_8x8",
    ("f16f32", 33, 32, 4, ROWS, ROWS): "avx2_f16f32_gemv_8x1",
    ("f64", 32, 32, 3, ROWS, ROWS): "avx2_f64_gemv_8x1" if HALVES else "avx512_f64_outer_14x16",
    ("f32", 4, 8, 3, COLUMNS, ROWS): "avx512_f32_outer_4x4",
    ("f32", 12, 4, 4, ROWS, ROWS): "avx512_f32_outer_4x4",
    ("f32", 6, 4, 4, ROWS, ROWS): "avx512_f32_outer_8x8",
    ("f16f32", 7, 1, 2, ROWS, ROWS): "avx512_f16f32_outer_8x8",
    ("f32", 2, 2069, 10, ROWS, COLUMNS): "avx512_f32_gemv_16x1",
    ("f64", 4, 1313, 90, ROWS, COLUMNS): "avx512_f64_gemv_8x1",
    ("f64", 5, 669, 10, ROWS, COLUMNS): "avx512_f64_gemv_8x1",
    ("f64", 8, 417, 52, ROWS, COLUMNS): "avx512_f64_gemv_8x1",
    ("f32", 12, 384, 64, ROWS, COLUMNS): "avx512_f32_gemv_16x1",
    ("f32", 12, 192, 16, ROWS, COLUMNS): "avx512_f32_gemv_16x1",
    ("f32", 2, 447, 3, ROWS, COLUMNS): "avx512_f32_gemv_16x1",
    ("f32", 2, 100, 3, ROWS, COLUMNS): "avx2_f32_gemv_8x1",
    ("f32", 3, 64, 40, ROWS, COLUMNS): "avx512_f32_gemv_16x1",
    ("f32", 4, 52, 2, ROWS, COLUMNS): "avx2_f32_gemv_8x1",  # as few multiply-adds as that
    ("bf16f32", 5, 2531, 21, ROWS, COLUMNS): "avx512_bf16f32_gemv_16x1",
    ("bf16f32", 84, 288, 4, ROWS, COLUMNS): "avx512_bf16f32_gemv_16x1",
    ("bf16f32", 11, 300, 12, ROWS, COLUMNS): "avx512_bf16f32_gemv_16x1",  # more rows go to AMX
    ("f32", 2, 53, 34, ROWS, COLUMNS): "avx512_f32_gemv_16x1",
    ("f16f32", 2, 32, 33, ROWS, COLUMNS): "avx512_f16f32_gemv_16x1",
    ("f64", 3, 32, 33, ROWS, COLUMNS): "avx512_f64_gemv_8x1",
    ("f64", 9, 20, 8, ROWS, ROWS): "avx512_f64_outer_14x16",
    ("f64", 8, 20, 7, ROWS, ROWS): "avx512_f64_outer_8x8",
    ("f64", 40, 40, 4, ROWS, ROWS): FOUR_COLUMNS,
    ("f64", 40, 20, 4, ROWS, COLUMNS): "avx2_f64_gemv_8x1",  # dot products
    ("f64", 40, 40, 4, ROWS, COLUMNS): "avx512_f64_gemv_8x1",
    ("f64", 40, 20, 3, ROWS, ROWS): "avx2_f64_gemv_8x1",
    ("f64", 40, 128, 4, ROWS, ROWS): "avx2_f64_gemv_8x1",  # long K
    ("f64", 20, 20, 30, ROWS, ROWS): "avx512_f64_outer_6x32",
    ("f64", 20, 20, 48, COLUMNS, ROWS): "avx512_f64_outer_8x24",
    ("f64", 20, 20, 64, ROWS, COLUMNS): "avx512_f64_outer_6x32",
    ("f64", 20, 20, 65, ROWS, ROWS): "avx512_f64_outer_14x16",
    ("f32", 20, 20, 52, ROWS, ROWS): "avx512_f32_outer_6x64",
    ("f16f32", 20, 20, 64, COLUMNS, ROWS): "avx512_f16f32_outer_6x64",
    ("f16f32", 16, 200, 16, ROWS, COLUMNS): "avx512_f16f32_gemv_16x1",
    ("f16f32", 81, 1209, 4, ROWS, COLUMNS): "avx512_f16f32_gemv_16x1",
    ("f16f32", 8, 256, 300, ROWS, COLUMNS): "avx512_f16f32_gemv_16x1",
    ("f16f32", 9, 108, 52, ROWS, COLUMNS): "avx512_f16f32_gemv_16x1",
    ("f16f32", 16, 96, 16, ROWS, COLUMNS): "avx512_f16f32_gemv_16x1",
    ("f64", 35, 1110, 2, ROWS, ROWS): "avx512_f64_gemv_8x1",  # B is copied
    ("f64", 35, 511, 2, ROWS, ROWS): "avx2_f64_gemv_8x1",
    ("f16f32", 3, 128, 2, ROWS, ROWS): "avx512_f16f32_gemv_16x1",
    ("f16f32", 3, 127, 2, ROWS, ROWS): "avx512_f16f32_outer_8x8",
    ("f16f32", 9, 512, 8, ROWS, ROWS): "avx512_f16f32_gemv_16x1",
    ("f16f32", 9, 511, 8, ROWS, ROWS): "avx512_f16f32_gemv_16x1" if HALVES else "avx512_f16f32_outer_8x8",
    ("f16f32", 9, 64, 8, ROWS, ROWS): "avx512_f16f32_outer_8x8",
    ("f16f32", 9, 63, 8, ROWS, ROWS): "avx512_f16f32_outer_8x8",
    ("f16f32", 9, 48, 6, ROWS, ROWS): "avx512_f16f32_outer_8x8",
    ("f16f32", 9, 47, 6, ROWS, ROWS): "avx512_f16f32_outer_8x8",
    ("f32", 15, 7, 100, ROWS, ROWS): "avx512_f32_outer_4x96",
    ("f32", 15, 24, 100, ROWS, COLUMNS): "avx512_f32_outer_6x64",
    ("f32", 15, 25, 100, ROWS, ROWS): "avx512_f32_outer_14x32",
    ("f64", 15, 7, 1000, COLUMNS, ROWS): "avx512_f64_outer_4x48",
    ("f64", 15, 15, 100, ROWS, ROWS): "avx512_f64_outer_6x32",
    ("f64", 15, 16, 100, ROWS, ROWS): "avx512_f64_outer_14x16",
    ("f16f32", 64, 32, 5, COLUMNS, ROWS): DIRECT,
    ("f16f32", 64, 128, 16, COLUMNS, COLUMNS): DIRECT,
    # few rows or columns, and both operands have adjacent elements along K
    ("f64", 3, 4, 8, ROWS, COLUMNS): "avx512_f64_gemv_8x1",
    ("f64", 3, 3, 8, ROWS, COLUMNS): "avx512_f64_outer_14x16",
    ("f64", 4, 12, 8, ROWS, COLUMNS): "avx512_f64_gemv_8x1",
    ("f64", 4, 11, 8, ROWS, COLUMNS): "avx512_f64_outer_14x16",
    ("f64", 2, 31, 300, ROWS, COLUMNS): "avx512_f64_gemv_8x1",
    ("f64", 40, 40, 3, ROWS, COLUMNS): "avx2_f64_gemv_8x1",
    ("f64", 40, 23, 4, ROWS, COLUMNS): "avx2_f64_gemv_8x1",
    ("f64", 40, 24, 4, ROWS, COLUMNS): "avx512_f64_gemv_8x1",
    ("f32", 2, 4, 8, ROWS, COLUMNS): "avx512_f32_gemv_16x1",
    ("f32", 4, 15, 30, ROWS, COLUMNS): "avx512_f32_outer_14x32",
    ("f32", 4, 16, 30, ROWS, COLUMNS): "avx512_f32_gemv_16x1",
    ("f32", 8, 47, 30, ROWS, COLUMNS): "avx512_f32_outer_14x32",
    ("f32", 8, 48, 30, ROWS, COLUMNS): "avx512_f32_gemv_16x1",
    ("f16f32", 2, 9, 33, ROWS, COLUMNS): "avx512_f16f32_gemv_16x1",
    ("f16f32", 2, 24, 33, ROWS, COLUMNS): "avx512_f16f32_outer_8x48",  # a half of a register
    ("f16f32", 4, 23, 33, ROWS, COLUMNS): "avx512_f16f32_outer_8x48",
    ("f16f32", 4, 25, 33, ROWS, COLUMNS): "avx512_f16f32_gemv_16x1",
    ("f16f32", 40, 40, 4, ROWS, COLUMNS): "avx512_f16f32_gemv_16x1",
    ("f16f32", 40, 40, 5, ROWS, COLUMNS): "avx512_f16f32_outer_8x8",
    ("f16f32", 40, 48, 5, ROWS, COLUMNS): "avx512_f16f32_gemv_16x1",
    ("f64", 7, 65, 40, ROWS, COLUMNS): "avx512_f64_outer_14x16",  # one row of tiles
    ("f64", 6, 65, 40, ROWS, COLUMNS): "avx512_f64_outer_8x24",
    ("f32", 9, 65, 51, ROWS, COLUMNS): "avx512_f32_outer_14x32",
    ("f32", 9, 65, 48, ROWS, COLUMNS): "avx512_f32_outer_8x48",
    # a long K
    ("f32", 3, 128, 30, ROWS, ROWS): "avx512_f32_outer_8x48",
    ("f32", 3, 128, 49, ROWS, ROWS): "avx512_f32_gemv_16x1",
    ("f64", 4, 400, 40, COLUMNS, ROWS): "avx512_f64_outer_8x24",
    ("f64", 10, 500, 16, ROWS, ROWS): "avx512_f64_outer_8x24",
    ("f64", 10, 500, 16, ROWS, NEITHER): "avx512_f64_outer_14x16",
    ("f32", 8, 301, 40, ROWS, ROWS): "avx512_f32_outer_14x32",
    ("f32", 8, 300, 40, ROWS, ROWS): "avx512_f32_outer_8x48",
    ("f32", 40, 101, 64, ROWS, ROWS): "avx512_f32_outer_14x32",
    ("f32", 40, 101, 64, ROWS, COLUMNS): "avx512_f32_outer_6x64",
    ("f32", 99, 300, 40, ROWS, ROWS): "avx512_f32_outer_14x32",
    ("f32", 99, 301, 40, ROWS, ROWS): "avx512_f32_outer_8x48",
    ("f64", 14, 2000, 40, ROWS, ROWS): "avx512_f64_outer_14x16",
    ("f64", 14, 2000, 40, ROWS, NEITHER): "avx512_f64_outer_8x24",
    ("f64", 15, 2000, 40, ROWS, COLUMNS): "avx512_f64_outer_14x16",
    ("f32", 16, 4, 3, ROWS, ROWS): "avx2_f32_gemv_8x1",  # a short one
    ("f32", 15, 4, 3, ROWS, ROWS): "avx512_f32_outer_8x8",
    ("f32", 700, 11, 2, ROWS, COLUMNS): "avx2_f32_gemv_8x1",
    ("f32", 700, 11, 3, ROWS, COLUMNS): "avx2_f32_gemv_8x1",
    ("f32", 700, 11, 3, ROWS, ROWS): "avx512_f32_outer_8x8",
    ("f64", 32, 11, 3, ROWS, ROWS): "avx2_f64_gemv_8x1",
    ("f64", 700, 11, 4, ROWS, ROWS): "avx512_f64_outer_4x4" if HALVES else "avx512_f64_outer_14x16",
    ("f16f32", 32, 13, 3, ROWS, ROWS): "avx2_f16f32_gemv_8x1",
    ("f16f32", 700, 13, 3, COLUMNS, ROWS): "avx512_f16f32_gemv_16x1",
}
CHOSEN_WITH_VNNI = {
    ("i8i32", 2, 1094, 2, ROWS, COLUMNS): "avx512vnni_i8i32_gemv_16x1",
    ("i8i32", 6, 662, 2, ROWS, COLUMNS): "avx512vnni_i8i32_gemv_16x1",
    ("i8i32", 5, 480, 52, ROWS, COLUMNS): "avx512vnni_i8i32_gemv_16x1",
    ("u8i8i32", 300, 129, 3, ROWS, COLUMNS): "avx512vnni_u8i8i32_gemv_16x1",
    ("u8i8i32", 1245, 82, 4, COLUMNS, ROWS): "avx512vnni_u8i8i32_gemv_16x1",
    ("u8i8i32", 2, 929, 60, ROWS, ROWS): "avx512vnni_u8i8i32_gemv_16x1",
    ("u8i8i32", 555, 1059, 9, COLUMNS, ROWS): "avx512vnni_u8i8i32_outer_14x32",
    ("u8i8i32", 255, 82, 4, COLUMNS, ROWS): "avx512vnni_u8i8i32_outer_14x32",
    ("i8i32", 30, 20, 3, ROWS, ROWS): "avx512vnni_i8i32_outer_14x32",
    ("i8i32", 30, 20, 2, ROWS, ROWS): "avx2_i8i32_gemv_8x1",
    ("i8i32", 30, 127, 3, ROWS, ROWS): "avx512vnni_i8i32_outer_14x32",
    ("i8i32", 30, 127, 2, ROWS, ROWS): "avx2_i8i32_gemv_8x1",
    ("i8i32", 30, 128, 3, ROWS, ROWS): "avx512vnni_i8i32_gemv_16x1",  # B is copied
    ("i8i32", 2, 128, 30, COLUMNS, COLUMNS): "avx512vnni_i8i32_gemv_16x1",
    ("i8i32", 7, 128, 3, ROWS, ROWS): "avx512vnni_i8i32_outer_14x32",
    ("u8i8i32", 1, 32, 50, ROWS, ROWS): "avx2_u8i8i32_gemv_8x1",
}
CHOSEN_WITH_AMX = {
    ("bf16f32", 30, 20, 20, ROWS, ROWS): "amx_bf16f32_outer_32x32",
    ("bf16f32", 30, 20, 20, NEITHER, COLUMNS): "amx_bf16f32_outer_32x32",
    ("bf16f32", 30, 20, 20, COLUMNS, ROWS): "avx512_bf16f32_outer_14x32",  # fewer multiply-adds than of a transposed A
    ("bf16f32", 40, 40, 40, COLUMNS, ROWS): "amx_bf16f32_outer_32x32",
    ("bf16f32", 40, 36, 30, COLUMNS, ROWS): "amx_bf16f32_outer_32x32",
    ("bf16f32", 33, 33, 34, COLUMNS, ROWS): "amx_bf16f32_outer_32x32",
    ("bf16f32", 33, 33, 33, COLUMNS, ROWS): "avx512_bf16f32_outer_8x48",  # fills less than a fourth of them
    ("bf16f32", 33, 33, 33, ROWS, ROWS): "amx_bf16f32_outer_32x32",
    ("bf16f32", 30, 20, 13, ROWS, ROWS): "amx_bf16f32_outer_32x32",
    ("bf16f32", 17, 18, 13, ROWS, ROWS): "avx512_bf16f32_outer_16x16",
    ("bf16f32", 40, 15, 20, ROWS, ROWS): "amx_bf16f32_outer_32x32",
    ("bf16f32", 33, 15, 18, ROWS, ROWS): "avx512_bf16f32_outer_14x32",
    ("bf16f32", 11, 40, 40, ROWS, ROWS): "avx512_bf16f32_outer_8x48",
    ("bf16f32", 33, 33, 18, ROWS, ROWS): "avx512_bf16f32_outer_14x32",  # most of the tile registers would be empty
    ("bf16f32", 33, 34, 33, ROWS, ROWS): "amx_bf16f32_outer_32x32",
    ("bf16f32", 37, 37, 37, ROWS, ROWS): "amx_bf16f32_outer_32x32",
    ("bf16f32", 11, 128, 40, ROWS, ROWS): "amx_bf16f32_outer_32x32",
    ("bf16f32", 40, 20, 4, ROWS, ROWS): "amx_bf16f32_outer_32x32",
    ("bf16f32", 20, 20, 4, ROWS, ROWS): "avx512_bf16f32_outer_8x8",
    ("bf16f32", 40, 20, 4, ROWS, COLUMNS): "amx_bf16f32_outer_32x32",
    ("bf16f32", 43, 12, 4, ROWS, COLUMNS): "amx_bf16f32_outer_32x32",
    ("bf16f32", 42, 12, 4, ROWS, COLUMNS): "avx512_bf16f32_gemv_16x1",  # less than 2,048 multiply-adds
    ("bf16f32", 40, 21, 4, ROWS, COLUMNS): "avx512_bf16f32_gemv_16x1",  # dot products
    ("bf16f32", 40, 36, 3, ROWS, COLUMNS): "amx_bf16f32_outer_32x32",
    ("bf16f32", 128, 8, 5, ROWS, ROWS): "amx_bf16f32_outer_32x32",  # a short K
    ("bf16f32", 128, 4, 8, ROWS, COLUMNS): "amx_bf16f32_outer_32x32",
    ("bf16f32", 37, 36, 3, ROWS, COLUMNS): "avx512_bf16f32_gemv_16x1",  # less than 4,096
    ("bf16f32", 40, 40, 2, ROWS, COLUMNS): "avx512_bf16f32_gemv_16x1",
    ("bf16f32", 40, 20, 2, ROWS, ROWS): "avx2_bf16f32_gemv_8x1",
    ("f16f32", 96, 96, 96, ROWS, ROWS): "amx_f16f32_outer_32x32",
    ("f16f32", 96, 96, 96, NEITHER, COLUMNS): "amx_f16f32_outer_32x32",
    ("f16f32", 96, 96, 96, COLUMNS, ROWS): "amx_f16f32_outer_32x32",
    ("f16f32", 92, 92, 92, ROWS, ROWS): "avx512_f16f32_outer_14x32",  # less than 768k multiply-adds
    ("f16f32", 64, 300, 64, ROWS, ROWS): "amx_f16f32_outer_32x32",
    ("f16f32", 64, 300, 64, COLUMNS, ROWS): "avx512_f16f32_outer_6x64",  # few columns for each element of A
    ("f16f32", 40, 600, 40, ROWS, ROWS): "avx512_f16f32_outer_8x48",  # not half of the registers' columns is there
    ("f16f32", 40, 40, 600, ROWS, ROWS): "avx512_f16f32_outer_14x32",
    ("f16f32", 200, 31, 200, ROWS, ROWS): "amx_f16f32_outer_32x32",
    ("f16f32", 100, 31, 300, ROWS, ROWS): "amx_f16f32_outer_32x32",
    ("f16f32", 64, 31, 500, ROWS, ROWS): "avx512_f16f32_outer_14x32",  # a short K
    ("f16f32", 300, 18, 300, ROWS, ROWS): "avx512_f16f32_outer_6x64",
    ("i8i32", 40, 40, 40, ROWS, ROWS): "avx512vnni_i8i32_outer_14x32",
}
SAME = [  # what the order does not change
    ("f32", 4, 9, 100, ROWS, NEITHER),
    ("f64", 5, 400, 400, ROWS, ROWS),
    ("f64", 2, 400, 400, ROWS, NEITHER),
    ("f32", 3000, 79, 16, COLUMNS, ROWS),  # C would be transposed for too few terms
    ("f64", 8, 200, 52, ROWS, ROWS),
    ("f64", 8, 417, 52, COLUMNS, COLUMNS),
    ("f64", 17, 300, 40, ROWS, COLUMNS),
    ("f64", 4, 11, 300, ROWS, COLUMNS),
    ("f32", 3, 7, 300, ROWS, COLUMNS),
    ("f16f32", 9, 107, 52, ROWS, COLUMNS),
    ("f16f32", 16, 95, 16, ROWS, COLUMNS),
    ("bf16f32", 6, 300, 9000, ROWS, COLUMNS),  # larger than L2
]
SAME_WITH_AVX512 = [
    ("f16f32", 2, 33, 900, ROWS, ROWS),  # core/direct.c
]
SAME_WITH_VNNI = [
    ("i8i32", 9, 900, 52, ROWS, COLUMNS),
    ("i8i32", 5, 479, 52, ROWS, COLUMNS),
    ("i8i32", 2, 127, 52, ROWS, COLUMNS),
]
WITH_AVX2 = {
    ("f32", 2, 447, 3, ROWS, COLUMNS): "avx2_f32_gemv_8x1",
    ("f32", 12, 384, 300, ROWS, COLUMNS): "avx2_f32_gemv_8x1",
    ("f64", 5, 160, 40, ROWS, COLUMNS): "avx2_f64_gemv_8x1",
    ("bf16f32", 4, 32, 4, ROWS, COLUMNS): "avx2_bf16f32_gemv_8x1",
    ("f16f32", 8, 255, 60, ROWS, COLUMNS): "avx2_f16f32_outer_6x16",
    ("f16f32", 8, 256, 60, ROWS, COLUMNS): "avx2_f16f32_gemv_8x1",
    ("i8i32", 6, 662, 2, ROWS, COLUMNS): "avx2_i8i32_gemv_8x1",
    ("u8i8i32", 12, 384, 40, ROWS, COLUMNS): "avx2_u8i8i32_gemv_8x1",
    ("f32", 32, 6, 3, COLUMNS, ROWS): "avx2_f32_gemv_8x1",
    ("f64", 200, 2, 4, COLUMNS, COLUMNS): "avx2_f64_gemv_8x1",
    ("f64", 199, 2, 4, COLUMNS, ROWS): "avx2_f64_outer_4x4",
    ("f64", 31, 8, 2, COLUMNS, ROWS): "avx2_f64_outer_6x8",
    ("f64", 32, 8, 2, COLUMNS, ROWS): "avx2_f64_gemv_8x1",
    ("f64", 16, 12, 2, ROWS, ROWS): "avx2_f64_gemv_8x1",
    ("f64", 15, 12, 2, ROWS, ROWS): "avx2_f64_outer_6x8",
    ("f64", 12, 12, 2, ROWS, COLUMNS): "avx2_f64_outer_6x8",  # with AVX-512 few.inc has a row for it
    ("f64", 15, 12, 2, ROWS, COLUMNS): "avx2_f64_outer_6x8",
    ("f64", 16, 11, 4, ROWS, COLUMNS): "avx2_f64_outer_4x4",
    ("f64", 16, 12, 4, ROWS, COLUMNS): "avx2_f64_gemv_8x1",  # dot products
    ("f32", 12, 1, 2, ROWS, ROWS): "avx2_f32_gemv_8x1",  # a single column is in either order
    ("f32", 12, 1, 2, NEITHER, ROWS): "avx2_f32_outer_8x8",
    ("f32", 11, 1, 2, COLUMNS, ROWS): "avx2_f32_outer_8x8",
    ("f32", 24, 3, 3, ROWS, ROWS): "avx2_f32_gemv_8x1",
    ("f32", 23, 3, 3, ROWS, ROWS): "avx2_f32_outer_8x8",
    ("f32", 250, 5, 4, ROWS, ROWS): "avx2_f32_outer_4x4",
    ("bf16f32", 250, 9, 3, ROWS, ROWS): "avx2_bf16f32_outer_8x8",
    ("bf16f32", 20, 8, 3, ROWS, ROWS): "avx2_bf16f32_gemv_8x1",
    ("f16f32", 8, 64, 2, COLUMNS, ROWS): "avx2_f16f32_outer_8x8",
    ("f64", 2, 5, 16, ROWS, COLUMNS): "avx2_f64_gemv_8x1",  # exchanged
    ("f64", 2, 5, 15, ROWS, COLUMNS): "avx2_f64_outer_6x8",
    ("f64", 2, 5, 16, COLUMNS, COLUMNS): "avx2_f64_outer_6x8",
    ("f64", 2, 5, 16, ROWS, ROWS): "avx2_f64_outer_6x8",
    ("f32", 4, 4, 32, ROWS, COLUMNS): "avx2_f32_gemv_8x1",
    ("f32", 4, 5, 200, ROWS, COLUMNS): "avx2_f32_outer_6x16",
    ("f16f32", 3, 4, 16, ROWS, COLUMNS): "avx2_f16f32_gemv_8x1",
    ("f16f32", 64, 5, 4, COLUMNS, ROWS): "avx2_f16f32_gemv_8x1",
    ("bf16f32", 63, 5, 4, COLUMNS, ROWS): "avx2_bf16f32_outer_4x4",
    ("f32", 2, 9, 96, ROWS, ROWS): "avx2_f32_gemv_8x1",
    ("f32", 2, 9, 95, ROWS, ROWS): "avx2_f32_outer_6x16",
    ("f32", 3, 9, 256, COLUMNS, ROWS): "avx2_f32_gemv_8x1",
    ("f64", 4, 60, 768, ROWS, ROWS): "avx2_f64_gemv_8x1",
    ("f64", 4, 60, 767, ROWS, ROWS): "avx2_f64_outer_6x8",
    ("bf16f32", 3, 33, 64, ROWS, ROWS): "avx2_bf16f32_gemv_8x1",
    ("bf16f32", 3, 33, 64, ROWS, COLUMNS): "avx2_bf16f32_gemv_8x1",  # dot products
    ("i8i32", 300, 6, 3, COLUMNS, ROWS): "avx2_i8i32_outer_6x16",
}


@needs_avx512
@pytest.mark.parametrize("case", CHOSEN, ids=str)
def test_the_kernel_for_this_order(case):
    row = row_of(*case)
    assert chosen(*case) == (row.kernel if row else CHOSEN[case])


@needs_vnni
@pytest.mark.parametrize("case", CHOSEN_WITH_VNNI, ids=str)
def test_the_kernel_for_bytes_in_this_order(case):
    row = row_of(*case)
    assert chosen(*case) == (row.kernel if row else CHOSEN_WITH_VNNI[case])


@needs_amx
@pytest.mark.parametrize("case", CHOSEN_WITH_AMX, ids=str)
def test_the_kernel_of_tile_registers_in_this_order(case):
    row = row_of(*case)
    if row and "amx" not in CHOSEN_WITH_AMX[case]:
        assert chosen(*case) == row.kernel
        return
    assert chosen(*case) == CHOSEN_WITH_AMX[case]


@pytest.mark.skipif(not any(k.target == "avx2" for k in pysimd.kernels("cpu", available=True)), reason="no AVX2 here")
def test_avx2_takes_the_order_into_account_too():
    code = """
import pysimd
from pysimd._cpu import lib
from pysimd.backends.cpu import table
table.start()
for types, m, k, n, a, b in {cases}:
    print(table.text(lib.pysimd_choose_ordered(table.TYPES[types], m, n, k, a, b).name))
"""
    found = output_of("-c", code.replace("{cases}", repr(list(WITH_AVX2))), PYSIMD_ISA="avx2").split()
    assert dict(zip(WITH_AVX2, found, strict=True)) == WITH_AVX2


@needs_avx512
@pytest.mark.parametrize("case", SAME_WITH_AVX512, ids=str)
def test_the_kernel_with_avx512_for_any_order(case):
    test_the_kernel_for_any_order(case)


@needs_vnni
@pytest.mark.parametrize("case", SAME_WITH_VNNI, ids=str)
def test_the_kernel_for_bytes_in_any_order(case):
    test_the_kernel_for_any_order(case)


@pytest.mark.parametrize("case", SAME, ids=str)
def test_the_kernel_for_any_order(case):
    types, m, k, n, _, _ = case
    assert chosen(*case) == table.text(lib.pysimd_choose(table.TYPES[types], m, n, k).name)


@needs_avx512
def test_a_large_operand_from_memory_is_left_to_other_kernels():
    n = 5 * lib.pysimd_caches().l2 // (100 * 8)
    assert chosen("f64", 2, 100, n, ROWS, ROWS) != "avx512_f64_outer_4x48"
    assert chosen("f64", 2, 100, n // 2, ROWS, ROWS) == "avx512_f64_outer_4x48"
    assert chosen("f64", 8, 200, n, ROWS, COLUMNS) != "avx512_f64_gemv_8x1"
    assert chosen("f64", 8, 200, n // 4, ROWS, COLUMNS) == "avx512_f64_gemv_8x1"


@pytest.mark.parametrize(
    "case", [case for case in CHOSEN | CHOSEN_WITH_VNNI | CHOSEN_WITH_AMX if max(case[1:4]) < 4000], ids=str
)
def test_products(case, rng):
    """The bits are those of the kernel by name, on any number of threads, at every place of a batch."""
    types, m, k, n, order_a, order_b = case
    a, b = pair(rng, types, (2, m, k), (2, k, n))
    x, y = stored(a, order_a), stored(b, order_b)
    found = pysimd.matmul(x, y)
    check(found, types, a, b)
    name = chosen(*case)
    assert found.tobytes() == pysimd.matmul(x, y, kernel=name).tobytes()
    for threads in (1, 2, 5):
        assert pysimd.matmul(x, y, threads=threads).tobytes() == found.tobytes(), threads
    for i in range(2):
        assert pysimd.matmul(x[i], y[i]).tobytes() == found[i].tobytes()
    c = random_result(rng, found.dtype, (m, n))
    check_factors(pysimd.gemm(x[0], y[0], c, alpha=2, beta=3), types, a[0], b[0], c, 2, 3)
    out = np.full((m, 2 * n), np.nan if found.dtype.kind == "f" else 77, found.dtype)[:, :n]
    assert pysimd.matmul(x[0], y[0], out=out).tobytes() == found[0].tobytes()


@pytest.mark.parametrize("types", ["i8i32", "u8i8i32"])
@pytest.mark.parametrize(("m", "k", "n"), [(40, 8, 8), (64, 12, 3), (33, 64, 5), (256, 16, 7), (9, 60, 8)])
def test_batches_of_few_columns_of_bytes(types, m, k, n, rng):
    """Which AMX computes by tile registers."""
    a, b = pair(rng, types, (20, m, k), (20, k, n))
    for y in (b, stored(b, COLUMNS), np.broadcast_to(b[0], b.shape)):
        check(pysimd.matmul(a, y), types, a, y)


def stored(x, order):
    if order == COLUMNS:
        return x.swapaxes(-1, -2).copy().swapaxes(-1, -2)
    if order == NEITHER:
        return np.repeat(np.repeat(x, 2, -1), 2, -2)[..., ::2, ::2]
    return x


@pytest.mark.parametrize("types", ["f32", "f64"])
def test_every_small_remainder(types, rng):
    """Rows and columns around the tiles of the kernels that are taken by order, and K around a register."""
    for few, many, k in itertools.product((2, 3, 4, 5, 8, 11, 12, 13, 16), (16, 25, 97, 193, 200), (32, 65, 257, 513)):
        for m, n in ((few, many), (many, few)):
            a, b = pair(rng, types, (m, k), (k, n))
            for x, y in itertools.product((a, np.asfortranarray(a)), (b, np.asfortranarray(b))):
                check(pysimd.matmul(x, y), types, a, b)


@pytest.mark.parametrize("types", ["f32", "f64", "bf16f32", "f16f32"])
def test_the_last_columns_of_a_transposed_a(types, rng):
    """One to four columns more than fill vectors, which AVX-512 computes by registers of rows (outer.h): the bits are
    those of A by rows, batched and with factors, and nothing beside C is written."""
    lanes = 8 if types == "f64" else 16
    kernels = [k for k in pysimd.kernels("cpu", available=True) if k.types == types and k.form == "outer"]
    highest = max((k.target for k in kernels if k.target != "amx"), key=list(table.TARGETS).index)
    for kernel in (k for k in kernels if k.target == highest):
        columns = [v * lanes + more for v in range(kernel.nr // lanes + 1) for more in (1, 2, 3, 4)]
        for n, m, k in itertools.product(columns, (3, 4, kernel.mr - 1, kernel.mr + 3), (15, 16, 24, 33)):
            a, b = pair(rng, types, (2, m, k), (2, k, n))
            x = stored(a, COLUMNS)
            found = pysimd.matmul(x, b, kernel=kernel)
            check(found, types, a, b)
            assert found.tobytes() == pysimd.matmul(a, b, kernel=kernel).tobytes(), (kernel.name, m, k, n)
            out = np.full((m, n + 1), np.nan, found.dtype)
            assert pysimd.matmul(x[0], b[0], out=out[:, :n], kernel=kernel).tobytes() == found[0].tobytes()
            assert np.isnan(out[:, n]).all()
            c = random_result(rng, found.dtype, (m, n))
            scaled = pysimd.gemm(x[1], b[1], c, alpha=2, beta=3, kernel=kernel)
            check_factors(scaled, types, a[1], b[1], c, 2, 3)
            check_factors(pysimd.gemm(x[1], b[1], c, alpha=1, beta=1, kernel=kernel), types, a[1], b[1], c, 1, 1)


@pytest.mark.parametrize("types", ["f32", "f64", "bf16f32", "f16f32", "i8i32", "u8i8i32"])
def test_dot_products_of_every_remainder(types, rng):
    """Few rows and columns of both operands, and K around a register; an element has the bits of any batch."""
    ks = (32, 33, 47, 63, 64, 95, 127, 129, 160, 257, 545)
    for (m, n), k in itertools.product(itertools.product((2, 3, 4, 5, 7, 8, 11), repeat=2), ks):
        a, b = pair(rng, types, (2, m, k), (2, n, k))
        found = pysimd.matmul(a, b.swapaxes(-1, -2))
        check(found, types, a, b.swapaxes(-1, -2))
        assert pysimd.matmul(a[1], b[1].T).tobytes() == found[1].tobytes(), (m, n, k)
