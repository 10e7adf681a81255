/* stage.c: see stage.h. Compiled for the baseline processor. Values that only have to be widened are converted in one
 * call for all products where the array is dense: an operand of a 4x4 product has 16 values, too few for a call of its
 * own. Everything else is packed product by product. */
#include "stage.h"

#include <stdlib.h>
#include <string.h>

#include "interleave.h"
#include "pack.h"
#include "planes.h"
#include "split.h"
#include "transpose.h"
#include "widen.h"

#include "../templates/kernel.h"

int64_t pysimd_staged_bytes_a(const pysimd_kernel *kernel, int64_t m, int64_t k)
{
    return pysimd_panel_of_a(kernel, m, k).bytes;
}

int64_t pysimd_staged_bytes_b(const pysimd_kernel *kernel, int64_t k, int64_t n)
{
    return pysimd_panel_of_b(kernel, k, n).bytes;
}

static int is_dense(const pysimd_operand *x)
{
    return (x->cs == 1 || x->cols == 1) && (x->rs == x->cols || x->rows == 1) &&
           (x->bs == x->rows * x->cols || x->count == 1);
}

void pysimd_make_dense(const pysimd_operand *x, int size, char *to)
{
    const int64_t each = x->rows * x->cols;
    if (x->bs == x->rows * x->rs || x->count == 1) { /* all rows are equally far apart */
        pysimd_copy_matrix(x->count * x->rows, x->cols, size, x->from, x->rs, x->cs, to, x->cols);
        return;
    }
    if (x->bs == 1 && x->count > 1) { /* the elements of all products at one place are adjacent: a transposition */
        const int merged = x->rs == x->cols * x->cs;
        const int64_t rows = merged ? 1 : x->rows, cols = merged ? each : x->cols;
        for (int64_t i = 0; i < rows; i++)
            pysimd_copy_matrix(x->count, cols, size, x->from + i * x->rs * size, 1, x->cs, to + i * cols * size, each);
        return;
    }
    for (int64_t q = 0; q < x->count; q++)
        pysimd_copy_matrix(x->rows, x->cols, size, x->from + q * x->bs * size, x->rs, x->cs, to + q * each * size,
                           x->cols);
}

/* All products, widened, element (i, j) of product q at to + (q*rows + i)*cols + j. */
static void widen(const pysimd_kernel *kernel, int operand, const pysimd_operand *x, char *to)
{
    enum { LONG = 16 };
    const int64_t each = x->rows * x->cols, all = x->count * each;
    const pysimd_sizes narrow = pysimd_element_sizes[kernel->types];
    const int size = operand ? narrow.b : narrow.a; /* half of the widened size */
    pysimd_widen_fn *const widen_values = pysimd_widening(kernel, operand);
    if (is_dense(x)) {
        widen_values(all, x->from, to);
    } else if (x->cs == 1 && x->cols >= LONG) {
        for (int64_t q = 0; q < x->count; q++)
            for (int64_t i = 0; i < x->rows; i++, to += 2 * x->cols * size)
                widen_values(x->cols, x->from + (q * x->bs + i * x->rs) * size, to);
    } else { /* made dense in the upper half of `to` */
        pysimd_make_dense(x, size, to + all * size);
        widen_values(all, to + all * size, to);
    }
}

/* SPLIT panels. An operand whose rows are not adjacent values is made dense before, piece by piece. */
#ifdef __x86_64__
enum { PIECE_ROWS = 32, PIECE_COLUMNS = 2 * PYSIMD_PLANE_K, VALUE = 2 /* bytes */ };

static void planes_of_a(int64_t m, int64_t k, const char *from, int64_t rs, int64_t cs, char *to, int64_t to_row)
{
    if (cs == 1) {
        avx512_planes_of_a(m, k, from, rs * VALUE, to, to_row);
        return;
    }
    char dense[PIECE_ROWS][PIECE_COLUMNS * VALUE];
    for (int64_t i = 0; i < m; i += PIECE_ROWS)
        for (int64_t p = 0; p < k; p += PIECE_COLUMNS) {
            const int64_t rows = least(m - i, PIECE_ROWS), columns = least(k - p, PIECE_COLUMNS);
            pysimd_copy_matrix(rows, columns, VALUE, from + (i * rs + p * cs) * VALUE, rs, cs, dense[0], PIECE_COLUMNS);
            avx512_planes_of_a(rows, columns, dense[0], sizeof dense[0],
                               to + i * to_row + p / PYSIMD_PLANE_K * 2 * PYSIMD_PLANE_BYTES, to_row);
        }
}

/* n columns, or `panels` panels of as many. */
static void planes_of_b(int64_t k, int64_t n, int64_t panels, const char *from, int64_t rs, int64_t cs, char *to,
                        int64_t panel_bytes)
{
    const int64_t plane = n * 2 * VALUE;
    if (cs == 1) {
        avx512_planes_of_b(k, n, panels, from, rs * VALUE, to, plane, panel_bytes);
        return;
    }
    char dense[PIECE_ROWS][PIECE_COLUMNS * VALUE];
    for (int64_t q = 0; q < panels; q++, from += n * cs * VALUE, to += panel_bytes)
        for (int64_t p = 0; p < k; p += PIECE_ROWS)
            for (int64_t j = 0; j < n; j += PIECE_COLUMNS) {
                const int64_t rows = least(k - p, PIECE_ROWS), columns = least(n - j, PIECE_COLUMNS);
                pysimd_copy_matrix(rows, columns, VALUE, from + (p * rs + j * cs) * VALUE, rs, cs, dense[0],
                                   PIECE_COLUMNS);
                avx512_planes_of_b(rows, columns, 1, dense[0], sizeof dense[0], to + p * plane + j * 2 * VALUE, plane,
                                   0);
            }
}
#endif

static pysimd_staged split_a(const pysimd_kernel *kernel, const pysimd_operand *a, char *to)
{
    const pysimd_panel_shape shape = pysimd_panel_of_a(kernel, a->rows, a->cols);
#ifdef __x86_64__
    for (int64_t q = 0; q < a->count; q++)
        planes_of_a(a->rows, a->cols, a->from + q * a->bs * VALUE, a->rs, a->cols == 1 ? 1 : a->cs,
                    to + q * shape.bytes, shape.bytes / a->rows);
#endif
    return (pysimd_staged){to, a->rows * shape.rs, shape.rs, shape.cs};
}

/* For tile registers: rows of whole cache lines. */
static pysimd_staged lines_of_a(const pysimd_kernel *kernel, const pysimd_operand *a, char *to)
{
    const pysimd_panel_shape shape = pysimd_panel_of_a(kernel, a->rows, a->cols);
#ifdef __x86_64__
    const int size = pysimd_element_sizes[kernel->types].a;
    const int64_t m = a->rows, k = a->cols;
    for (int64_t q = 0; q < a->count; q++, to += shape.bytes) {
        const char *from = a->from + q * a->bs * size;
        if (a->cs == 1) {
            avx512_copy_lines(m, k * size, from, a->rs * size, to);
        } else {
            pysimd_copy_matrix(m, k, size, from, a->rs, a->cs, to, shape.rs);
            avx512_clear_lines(m, k * size, to);
        }
    }
    to -= a->count * shape.bytes;
#endif
    return (pysimd_staged){to, a->rows * shape.rs, shape.rs, shape.cs};
}

pysimd_staged pysimd_stage_a(const pysimd_kernel *kernel, const pysimd_operand *a, char *to)
{
    enum { IN_L1 = 16 << 10 };
    const int64_t m = a->rows, k = a->cols, each = m * k;
    const int by_columns = llabs(a->rs) < llabs(a->cs) && a->cs != 1; /* a kernel with k_group 1 reads that as well */
    const pysimd_operand columns = {a->count, k, m, a->from, a->bs, a->cs, a->rs};
    if (kernel->panel == SPLIT) return split_a(kernel, a, to);
    if (kernel->k_tile) return lines_of_a(kernel, a, to);
    if (kernel->panel == WIDE) {
        if (by_columns && kernel->k_group == 1) {
            widen(kernel, 0, &columns, to);
            return (pysimd_staged){to, each, 1, m};
        }
        /* Where K is no multiple of k_group, a row's last group ends in the next row, times the zeros of B's panel. */
        widen(kernel, 0, a, to);
        if (k % kernel->k_group) memset(to + 2 * pysimd_element_sizes[kernel->types].a * a->count * each, 0, 2);
        return (pysimd_staged){to, each, k, kernel->k_group};
    }
    const pysimd_panel_shape shape = pysimd_panel_of_a(kernel, m, k);
    const int size = pysimd_element_sizes[kernel->types].a, group = kernel->k_group;
    const int64_t bs = shape.bytes / pysimd_sizes_in_kernel(kernel).a;
    if (kernel->form == GEMV && by_columns) {
        pysimd_make_dense(&columns, size, to);
        return (pysimd_staged){to, each, 1, m};
    }
    /* The kernel strides over whole columns. */
    if (a->rs == 1 && by_columns && group > 1 && shape.bytes <= IN_L1) {
        for (int64_t q = 0; q < a->count; q++)
            pysimd_pack_columns_of_a(kernel, m, k, a->from + q * a->bs * size, a->cs, to + q * shape.bytes);
        return (pysimd_staged){to, bs, group, m * group};
    }
    if (kernel->panel == PLAIN && group == 1) {
        pysimd_make_dense(a, size, to);
        return (pysimd_staged){to, each, k, 1};
    }
    if (is_dense(a)) { /* the rows of all products */
        pysimd_pack_a(kernel, a->count * m, k, a->from, k, 1, to);
        return (pysimd_staged){to, bs, shape.rs, shape.cs};
    }
    for (int64_t q = 0; q < a->count; q++)
        pysimd_pack_a(kernel, m, k, a->from + q * a->bs * size, a->rs, a->cs, to + q * shape.bytes);
    return (pysimd_staged){to, bs, shape.rs, shape.cs};
}

/* `bytes` adjacent bytes of each of `columns` columns, one after the other, in WORDS words, a constant, of which the
 * last overlaps the one before it. */
INLINE void copy_pieces(const int WORDS, int64_t columns, int64_t bytes, const char *from, int64_t step, char *to)
{
    enum { WORD = 16 };
    for (int64_t p = 0; p < columns; p++, from += step, to += bytes) {
        UNROLL for (int i = 0; i < WORDS - 1; i++) memcpy(to + i * WORD, from + i * WORD, WORD);
        memcpy(to + bytes - WORD, from + bytes - WORD, WORD);
    }
}

static void copy_columns(int64_t columns, int64_t bytes, const char *from, int64_t step, char *to)
{
    switch ((bytes + 15) / 16) {
#define CASE(WORDS) case WORDS: copy_pieces(WORDS, columns, bytes, from, step, to); break;
        CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7) CASE(8)
#undef CASE
        default:
            for (int64_t p = 0; p < columns; p++) memcpy(to + p * bytes, from + p * step, (size_t)bytes);
    }
}

void pysimd_stage_tiles_of_a(const pysimd_kernel *kernel, const pysimd_operand *a, char *to)
{
    enum { COLUMNS_AT_A_TIME = 8, WIDENED_ROWS = 256 };
    const int size = pysimd_element_sizes[kernel->types].a, packed = pysimd_sizes_in_kernel(kernel).a;
    pysimd_widen_fn *const widen_column = kernel->panel == WIDE ? pysimd_widening(kernel, 0) : NULL;
    _Alignas(64) char wide[COLUMNS_AT_A_TIME * WIDENED_ROWS * sizeof(float)];
    const split tiles = rows_of_tiles(kernel, a->rows, kernel->mr);
    const int64_t together = widen_column ? WIDENED_ROWS / kernel->mr : tiles.count;
    for (int64_t t0 = 0, i0 = 0, t1, i1; t0 < tiles.count; t0 = t1, i0 = i1) {
        t1 = least(t0 + together, tiles.count), i1 = i0;
        for (int64_t t = t0; t < t1; t++) i1 += part_of(&tiles, t, a->rows - i1);
        for (int64_t p = 0, columns; p < a->cols; p += columns) {
            columns = least(a->cols - p, COLUMNS_AT_A_TIME);
            const char *from = a->from + (i0 + p * a->cs) * size;
            int64_t step = a->cs * size;
            if (widen_column) {
                for (int64_t q = 0; q < columns; q++)
                    widen_column(i1 - i0, from + q * step, wide + q * WIDENED_ROWS * packed);
                from = wide, step = WIDENED_ROWS * packed;
            }
            for (int64_t t = t0, i = i0, m; t < t1; t++, i += m) {
                m = part_of(&tiles, t, a->rows - i);
                copy_columns(columns, m * packed, from + (i - i0) * packed, step, to + (i * a->cols + p * m) * packed);
            }
        }
    }
}

/* Whether B's panels were made by AVX2, all products in one call: int8 that is interleaved in pairs of k, and floats
 * and doubles that are stored by columns. With a call of pysimd_pack_b for each, 16x16 int8 took 143 ns, and 126 like
 * this (Zen 3). */
static int stages_by_avx2(const pysimd_kernel *kernel, const pysimd_operand *b, char *to)
{
#ifdef __x86_64__
    const int64_t k = b->rows, n = b->cols;
    if (kernel->form != OUTER || kernel->target < AVX2) return 0;
    if (kernel->panel == WIDE && kernel->k_group == 2 && b->cs == 1 && n >= 8) {
        avx2_pair_bytes(b->count, k, n, b->from, b->bs, b->rs, to);
        return 1;
    }
    if (kernel->panel != PLAIN || b->rs != 1) return 0;
    if (kernel->types == F32 && k >= 8 && n >= 8) {
        avx2_transpose_each_f32(b->count, k, n, b->from, b->bs, b->cs, to);
        return 1;
    }
    if (kernel->types == F64 && k >= 4 && n >= 4) {
        avx2_transpose_each_f64(b->count, k, n, b->from, b->bs, b->cs, to);
        return 1;
    }
#endif
    (void)kernel, (void)b, (void)to;
    return 0;
}

pysimd_staged pysimd_stage_b(const pysimd_kernel *kernel, const pysimd_operand *b, char *to)
{
    const int64_t k = b->rows, n = b->cols;
    if (kernel->panel == WIDE && kernel->k_group == 1) {
        widen(kernel, 1, b, to);
        return (pysimd_staged){to, k * n, n, 1};
    }
    const pysimd_panel_shape shape = pysimd_panel_of_b(kernel, k, n);
    const int size = pysimd_element_sizes[kernel->types].b;
    const int64_t bs = shape.bytes / pysimd_sizes_in_kernel(kernel).b;
#ifdef __x86_64__
    if (kernel->panel == SPLIT) {
        for (int64_t q = 0; q < b->count; q++)
            planes_of_b(k, n, 1, b->from + q * b->bs * size, b->rs, n == 1 ? 1 : b->cs, to + q * shape.bytes, 0);
        return (pysimd_staged){to, bs, shape.rs, 1};
    }
#endif
    if (stages_by_avx2(kernel, b, to)) return (pysimd_staged){to, bs, shape.rs, 1};
    if (kernel->panel == PLAIN && kernel->k_group == 1 && kernel->form == OUTER) {
        pysimd_make_dense(b, size, to);
        return (pysimd_staged){to, bs, shape.rs, 1};
    }
    const int64_t packed = kernel->k_tile ? quotient(k, kernel->k_group) * n * kernel->k_group * size : shape.bytes;
    for (int64_t q = 0; q < b->count; q++) {
        pysimd_pack_b(kernel, k, n, b->from + q * b->bs * size, b->rs, b->cs, to + q * shape.bytes);
        if (packed < shape.bytes) memset(to + q * shape.bytes + packed, 0, (size_t)(shape.bytes - packed));
    }
    return (pysimd_staged){to, bs, shape.rs, 1};
}

void pysimd_stage_panels(const pysimd_kernel *kernel, int64_t k, int64_t n, const char *b, int64_t rs, int64_t cs,
                         char *to, int64_t panel_bytes)
{
    const int size = pysimd_element_sizes[kernel->types].b, nr = kernel->nr;
#ifdef __x86_64__
    if (kernel->panel == SPLIT) {
        const int64_t whole = n / nr, rest = n % nr;
        planes_of_b(k, nr, whole, b, rs, cs, to, panel_bytes);
        if (rest) planes_of_b(k, rest, 1, b + whole * nr * cs * size, rs, cs, to + whole * panel_bytes, 0);
        return;
    }
#endif
    if (kernel->panel != WIDE) {
        pysimd_pack_panels(kernel, k, n, b, rs, cs, to, panel_bytes);
        return;
    }
    int64_t j = 0;
    pysimd_widen_panels_fn *const widen_panels = cs == 1 ? pysimd_widening_panels(kernel) : NULL;
    if (widen_panels) {
        widen_panels(k, nr, n / nr, b, rs * size, to, panel_bytes);
        j = n / nr * nr;
    }
    for (; j < n; j += nr) {
        const pysimd_operand panel = {1, k, least(nr, n - j), b + j * cs * size, 0, rs, cs};
        pysimd_stage_b(kernel, &panel, to + j / nr * panel_bytes);
    }
}

void pysimd_stage_unsigned_panels(int nr, int64_t k, int64_t n, const char *b, int64_t rs, char *to,
                                  int64_t panel_bytes)
{
    for (int64_t j = 0; j < n; j += nr, to += panel_bytes) {
        const int64_t columns = least(nr, n - j);
#ifdef __x86_64__
        if (columns >= 8 && pysimd_has(AVX2)) {
            avx2_pair_unsigned_bytes(k, columns, b + j, rs, to);
            continue;
        }
#endif
        int16_t *pairs = (int16_t *)to;
        if (k % 2) memset(pairs + (k - 1) * columns, 0, (size_t)(2 * columns) * sizeof *pairs);
        for (int64_t p = 0; p < k; p++)
            for (int64_t c = 0; c < columns; c++)
                pairs[(p / 2 * columns + c) * 2 + p % 2] = (uint8_t)b[p * rs + j + c];
    }
}
