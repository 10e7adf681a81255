/* fuzz_driver.c: products of any kernel, shape, strides, batch, flags and number of threads through pysimd_multiply,
 * from the bytes of an input; on memory of exactly their size, around which the address sanitizer watches.
 *
 * Operands are small integers, whose sums every type holds exactly: the result must be equal to the plain loop's.
 *
 * Compiled with -fsanitize=fuzzer it is a target of libFuzzer; with -DSTANDALONE it has a main:
 *
 *     fuzz_driver SECONDS SEED FOLDER    random inputs; a finding is written to FOLDER/crash
 *     fuzz_driver FILE...                these inputs
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/direct.h"
#include "core/driver.h"
#include "core/gemm.h"
#include "core/registry.h"

enum { MOST_MACS = 400 * 1000, MOST_ELEMENTS = 1 << 18 };

/* Of kernels that are not built here. */
#define NOT_HERE(NAME)                                                                                                 \
    void NAME(const pysimd_kernel *kernel, const pysimd_call *s, int64_t cs_b)                                         \
    {                                                                                                                  \
        (void)kernel, (void)s, (void)cs_b, abort();                                                                    \
    }
NOT_HERE(avx512_columns_bf16)
NOT_HERE(avx512_columns_f16)
NOT_HERE(avx512_direct_bf16)
NOT_HERE(avx512_direct_f16)
NOT_HERE(avx512vnni_direct_i8)
NOT_HERE(avx512vnni_direct_u8i8)

typedef struct {
    const uint8_t *at, *end;
} input;

/* 0 to `most`; 0 where the input has ended. */
static int64_t take(input *in, int64_t most)
{
    uint32_t value = 0;
    for (int i = 0; i < (most > 255 ? 2 : 1) && in->at < in->end; i++) value = value << 8 | *in->at++;
    return value % (most + 1);
}

static int64_t a_size(input *in)
{
    switch (take(in, 7)) {
    case 0: return take(in, 3);
    case 1: return 40 + take(in, 60);
    case 2: return take(in, 1400);
    default: return 1 + take(in, 40);
    }
}

/* --- operands: an array of the strides that the input wants, in memory of exactly that size --- */

typedef struct {
    char *memory, *start, *data; /* what is freed; the lowest element; element (0, 0) of the first product */
    int64_t elements, rs, cs, bs[2];
    int size;
} operand;

static int64_t magnitude(int64_t x) { return x < 0 ? -x : x; }

/* Strides of rows x cols; `adjacent`: those of a result, whose columns are adjacent and whose rows do not overlap. */
static int place(operand *x, input *in, int64_t rows, int64_t cols, const int64_t *batch, int size, int adjacent)
{
    const int64_t pad = take(in, 5) == 0 ? take(in, 9) : 0;
    const int kind = (int)take(in, adjacent ? 1 : 9);
    x->size = size, x->cs = 1, x->rs = cols + pad;
    if (adjacent) {
        if (kind == 1) x->rs = -x->rs;
    } else if (kind >= 7) /* by columns */
        x->rs = 1, x->cs = rows + pad;
    else if (kind == 6) /* elements apart */
        x->cs = 2 + take(in, 2), x->rs = x->cs * cols + pad;
    else if (kind == 5)
        x->rs = -x->rs, x->cs = -1;
    else if (kind == 4)
        x->rs = 0;
    else if (kind == 3)
        x->cs = 0;
    const int64_t by_rows = rows * magnitude(x->rs), by_columns = cols * magnitude(x->cs);
    int64_t step = by_rows > by_columns ? by_rows : by_columns;
    for (int d = 1; d >= 0; d--) {
        const int broadcast = !adjacent && take(in, 3) == 0;
        x->bs[d] = broadcast ? 0 : take(in, 7) == 0 ? -step : step;
        step *= batch[d] > 0 ? batch[d] : 1;
    }
    int64_t low = 0, high = 0;
    const int64_t lengths[4] = {rows, cols, batch[0], batch[1]}, strides[4] = {x->rs, x->cs, x->bs[0], x->bs[1]};
    for (int i = 0; i < 4; i++) {
        const int64_t reach = lengths[i] > 0 ? (lengths[i] - 1) * strides[i] : 0;
        if (reach < 0)
            low += reach;
        else
            high += reach;
    }
    x->elements = rows && cols && batch[0] && batch[1] ? high - low + 1 : 0;
    if (x->elements > MOST_ELEMENTS) return 0;
    const size_t odd = take(in, 3) == 0 ? 1 : 0; /* byte of alignment */
    const size_t bytes = (size_t)x->elements * (size_t)size;
    x->memory = malloc(bytes + odd);
    x->start = x->memory + odd;
    x->data = x->start - low * size;
    return 1;
}

static int64_t offset(const operand *x, int64_t i, int64_t j, int64_t b0, int64_t b1)
{
    return i * x->rs + j * x->cs + b0 * x->bs[0] + b1 * x->bs[1];
}

/* --- elements --- */

static uint32_t state;
static int a_small_number(void)
{
    state = state * 1664525u + 1013904223u;
    return (int)(state >> 28) - 8; /* -8 to 7 */
}

typedef enum { OF_F32, OF_F64, OF_BF16, OF_F16, OF_I8, OF_U8, OF_I32 } element;

static const element element_a[TYPES] = {OF_F32, OF_F64, OF_BF16, OF_F16, OF_I8, OF_U8};
static const element element_b[TYPES] = {OF_F32, OF_F64, OF_BF16, OF_F16, OF_I8, OF_I8};
static const element element_c[TYPES] = {OF_F32, OF_F64, OF_F32, OF_F32, OF_I32, OF_I32};

static void put(char *at, element kind, double value)
{
    float f = (float)value;
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    const uint16_t bf16 = (uint16_t)(bits >> 16);
    /* of f16: small integers are normal numbers */
    const uint32_t half = (bits >> 16 & 0x8000) | (((bits >> 23 & 255) - 112) << 10) | (bits >> 13 & 0x3ff);
    const uint16_t f16 = value == 0 ? 0 : (uint16_t)half;
    const int8_t i8 = (int8_t)(int)value;
    const uint8_t u8 = (uint8_t)(int)value;
    const int32_t i32 = (int32_t)value;
    switch (kind) {
    case OF_F32: memcpy(at, &f, 4); break;
    case OF_F64: memcpy(at, &value, 8); break;
    case OF_BF16: memcpy(at, &bf16, 2); break;
    case OF_F16: memcpy(at, &f16, 2); break;
    case OF_I8: memcpy(at, &i8, 1); break;
    case OF_U8: memcpy(at, &u8, 1); break;
    case OF_I32: memcpy(at, &i32, 4); break;
    }
}

static double get(const char *at, element kind)
{
    float f;
    double d;
    uint16_t h;
    int32_t i;
    uint32_t bits;
    switch (kind) {
    case OF_F32: memcpy(&f, at, 4); return f;
    case OF_F64: memcpy(&d, at, 8); return d;
    case OF_BF16: memcpy(&h, at, 2), bits = (uint32_t)h << 16, memcpy(&f, &bits, 4); return f;
    case OF_F16:
        memcpy(&h, at, 2);
        bits = (uint32_t)(h & 0x8000) << 16 | (((uint32_t)(h >> 10 & 31) + 112) << 23) | (uint32_t)(h & 0x3ff) << 13;
        if (h == 0) bits = 0;
        memcpy(&f, &bits, 4);
        return f;
    case OF_I8: return (int8_t)*at;
    case OF_U8: return (uint8_t)*at;
    case OF_I32: memcpy(&i, at, 4); return i;
    }
    return 0;
}

/* Every element; bytes between are 0xff: NaN, -1 or 255. */
static void fill(operand *x, element kind, int64_t rows, int64_t cols, const int64_t *batch)
{
    memset(x->start, 0xff, (size_t)x->elements * (size_t)x->size);
    for (int64_t b0 = 0; b0 < batch[0]; b0++)
        for (int64_t b1 = 0; b1 < batch[1]; b1++)
            for (int64_t i = 0; i < rows; i++)
                for (int64_t j = 0; j < cols; j++) {
                    const int value = a_small_number();
                    put(x->data + offset(x, i, j, b0, b1) * x->size, kind, kind == OF_U8 ? value + 8 : value);
                }
}

static void keep(void);

static void fail(const pysimd_kernel *kernel, const char *what, int64_t m, int64_t n, int64_t k, int flags)
{
    keep();
    fprintf(stderr, "%s: %s; m = %ld, n = %ld, k = %ld, flags = %d\n", kernel->name, what, (long)m, (long)n, (long)k,
            flags);
    abort();
}

static void one(input *in)
{
    const pysimd_kernel *kernel = pysimd_kernels + take(in, pysimd_kernel_count - 1);
    if (!kernel->run || !pysimd_can_run(kernel)) return;
    int64_t m = a_size(in), n = a_size(in), k = a_size(in), batch[2] = {1, 1};
    for (int d = 0; d < 2; d++)
        if (take(in, 2) == 0) batch[d] = take(in, 6);
    if ((double)m * (double)n * (double)k * (double)batch[0] * (double)batch[1] > MOST_MACS) return;
    const int types = kernel->types;
    const pysimd_sizes size = pysimd_element_sizes[types];
    operand a = {0}, b = {0}, c = {0};
    state = (uint32_t)take(in, 65535);
    if (!place(&a, in, m, k, batch, size.a, 0) || !place(&b, in, k, n, batch, size.b, 0) ||
        !place(&c, in, m, n, batch, size.c, 1))
        goto done;
    fill(&a, element_a[types], m, k, batch), fill(&b, element_b[types], k, n, batch);
    fill(&c, element_c[types], m, n, batch);
    char *before = malloc((size_t)c.elements * (size_t)c.size + 1);
    memcpy(before, c.start, (size_t)c.elements * (size_t)c.size);

    int flags = take(in, 1) ? PYSIMD_ZERO : 0;
    double alpha = 1, beta = flags ? 0 : 1;
    if (pysimd_gemm_takes(kernel, m, n, k) && take(in, 2) == 0) {
        flags |= PYSIMD_FACTORS;
        alpha = (double)take(in, 6) - 3, beta = flags & PYSIMD_ZERO ? 0 : (double)take(in, 6) - 3;
    }
    pysimd_product p = {.m = m, .n = n, .k = k, .a = a.data, .rs_a = a.rs, .cs_a = a.cs, .b = b.data, .rs_b = b.rs,
                        .cs_b = b.cs, .c = c.data, .rs_c = c.rs, .cs_c = 1, .ndim = 2, .flags = flags,
                        .alpha = alpha, .beta = beta};
    for (int d = 0; d < 2; d++)
        p.shape[d] = batch[d], p.batch_a[d] = a.bs[d], p.batch_b[d] = b.bs[d], p.batch_c[d] = c.bs[d];
    /* As door.c does: strides of a single row or column do not matter. */
    if (m == 1) p.rs_a = p.rs_c = 0;
    if (k == 1) p.cs_a = p.rs_b = 1;
    if (n == 1) p.cs_b = 1;
    const int dense = batch[0] == 1 && c.rs == n && c.bs[1] == m * n && n == kernel->nr && kernel->form == OUTER;
    if (dense && flags == PYSIMD_ZERO && (uintptr_t)c.data % 16 == 0 && take(in, 1)) p.flags |= PYSIMD_STREAM;
    p.threads = (int)take(in, 4), p.woken = (int)take(in, 2);
    if (pysimd_multiply(kernel, &p)) fail(kernel, "no memory", m, n, k, p.flags);

    for (int64_t b0 = 0; b0 < batch[0]; b0++)
        for (int64_t b1 = 0; b1 < batch[1]; b1++)
            for (int64_t i = 0; i < m; i++)
                for (int64_t j = 0; j < n; j++) {
                    double sum = 0;
                    for (int64_t q = 0; q < k; q++)
                        sum += get(a.data + offset(&a, i, q, b0, b1) * a.size, element_a[types]) *
                               get(b.data + offset(&b, q, j, b0, b1) * b.size, element_b[types]);
                    char *at = c.data + offset(&c, i, j, b0, b1) * c.size;
                    const char *old = before + (at - c.start);
                    const double start = beta == 0 ? 0 : beta * get(old, element_c[types]);
                    if (get(at, element_c[types]) != alpha * sum + start) fail(kernel, "wrong", m, n, k, p.flags);
                    memcpy(at, old, (size_t)c.size);
                }
    if (memcmp(before, c.start, (size_t)c.elements * (size_t)c.size))
        fail(kernel, "written between rows", m, n, k, p.flags);
    free(before);
done:
    free(a.memory), free(b.memory), free(c.memory);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int started;
    if (!started) pysimd_start(TARGETS - 1), started = 1;
    one(&(input){data, data + size});
    return 0;
}

#ifndef STANDALONE
static void keep(void) {} /* libFuzzer does */
#else
enum { LENGTH = 64 };
static uint8_t current[1 << 16];
static size_t length;
static char crash[4096];

void __asan_set_death_callback(void (*callback)(void));

static void keep(void)
{
    FILE *file = *crash ? fopen(crash, "wb") : NULL;
    if (file) fwrite(current, 1, length, file), fclose(file);
}

int main(int count, char **words)
{
    __asan_set_death_callback(keep);
    if (count == 4 && strtol(words[1], NULL, 10) > 0) {
        const time_t end = time(NULL) + strtol(words[1], NULL, 10);
        uint64_t seed = strtoull(words[2], NULL, 10) * 2654435761u + 88172645463325252u;
        long inputs = 0;
        snprintf(crash, sizeof crash, "%s/crash", words[3]);
        for (length = LENGTH; time(NULL) < end; inputs++) {
            for (size_t i = 0; i < length; i++) {
                seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
                current[i] = (uint8_t)(seed >> 32);
            }
            LLVMFuzzerTestOneInput(current, length);
        }
        printf("%ld inputs\n", inputs);
        return 0;
    }
    for (int i = 1; i < count; i++) {
        FILE *file = fopen(words[i], "rb");
        if (!file) return perror(words[i]), 1;
        length = fread(current, 1, sizeof current, file);
        fclose(file);
        LLVMFuzzerTestOneInput(current, length);
    }
    printf("%d inputs\n", count - 1);
    return 0;
}
#endif
