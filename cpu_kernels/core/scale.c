/* scale.c: see scale.h. Compiled for the baseline processor. Each multiplication and the addition are rounded on their
 * own (no fused multiply-add), factors are rounded to the type of the result; int32 wraps around. */
#include "scale.h"

#include <string.h>

typedef void row_fn(int64_t n, pysimd_factors f, const char *x, int64_t step_x, const char *c, int64_t step_c, char *to,
                    int64_t step_to);

/* T: of the elements; U: what they are computed in. */
#define ROW(NAME, T, U)                                                                                                \
    static void NAME(int64_t n, pysimd_factors f, const char *x, int64_t step_x, const char *c, int64_t step_c,       \
                     char *to, int64_t step_to)                                                                        \
    {                                                                                                                  \
        const U alpha = (U)(T)f.alpha, beta = (U)(T)f.beta;                                                            \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            T value, added;                                                                                            \
            memcpy(&value, x + i * step_x, sizeof value);                                                              \
            U sum = (U)value * alpha;                                                                                  \
            if (c) {                                                                                                   \
                memcpy(&added, c + i * step_c, sizeof added);                                                          \
                sum += (U)added * beta;                                                                                \
            }                                                                                                          \
            value = (T)sum;                                                                                            \
            memcpy(to + i * step_to, &value, sizeof value);                                                            \
        }                                                                                                              \
    }
ROW(row_f32, float, float)
ROW(row_f64, double, double)
ROW(row_i32, int32_t, uint32_t)

static row_fn *const rows[TYPES] = {[F32] = row_f32,    [F64] = row_f64,   [BF16F32] = row_f32,
                                    [F16F32] = row_f32, [I8I32] = row_i32, [U8I8I32] = row_i32};

void pysimd_scale(const pysimd_scaling *s)
{
    const int last = s->ndim - 1;
    int64_t index[PYSIMD_MAX_DIMS + 2] = {0};
    const char *product = s->product, *c = s->c;
    char *target = s->target;
    for (int d = 0; d < s->ndim; d++)
        if (s->shape[d] == 0) return;
    for (;;) {
        rows[s->types](s->shape[last], s->factors, product, s->product_strides[last], c, s->c_strides[last], target,
                       s->target_strides[last]);
        int d = last - 1;
        for (; d >= 0; d--) { /* the next row */
            product += s->product_strides[d], target += s->target_strides[d];
            if (c) c += s->c_strides[d];
            if (++index[d] < s->shape[d]) break;
            product -= s->shape[d] * s->product_strides[d], target -= s->shape[d] * s->target_strides[d];
            if (c) c -= s->shape[d] * s->c_strides[d];
            index[d] = 0;
        }
        if (d < 0) return;
    }
}
