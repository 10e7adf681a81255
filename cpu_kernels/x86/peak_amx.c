/* peak_amx.c: the peaks of target amx. Loads are not timed: a tile is a quarter of the window that other loads read in
 * L1. */
#include "vec_amx.h"

#include "../core/measure.h"

/* Random bits, and as bfloat16 in [1, 2): zeros would draw less power, and so run at a higher clock than any
 * product. */
static void fill(uint16_t *to, int count)
{
    for (uint32_t seed = 1; count > 0; count--, to++) {
        seed = seed * 1664525u + 1013904223u;
        *to = (uint16_t)(0x3f80 | seed >> 25);
    }
}

INLINE void start(void)
{
    _Alignas(64) uint16_t random[TILE_ROWS * TILE_ROW_BYTES / 2];
    tile_config config = {.palette = 1};
    for (int i = 0; i < 8; i++) config.rows[i] = TILE_ROWS, config.row_bytes[i] = TILE_ROW_BYTES;
    fill(random, sizeof random / sizeof *random);
    TILE_CONFIGURE(config);
    TILE_LOAD(4, random, TILE_ROW_BYTES);
    TILE_LOAD(5, random, TILE_ROW_BYTES);
    TILE_LOAD(6, random, TILE_ROW_BYTES);
    TILE_LOAD(7, random, TILE_ROW_BYTES);
}

/* The multiply-adds of a step of a 2 x 2 tile, nothing loaded or stored. */
#define PEAK(NAME, TDP)                                                                                                \
    void NAME(int64_t n)                                                                                               \
    {                                                                                                                  \
        start();                                                                                                       \
        for (; n > 0; n--) {                                                                                           \
            TILE_MULTIPLY(TDP, 0, 4, 6);                                                                               \
            TILE_MULTIPLY(TDP, 1, 4, 7);                                                                               \
            TILE_MULTIPLY(TDP, 2, 5, 6);                                                                               \
            TILE_MULTIPLY(TDP, 3, 5, 7);                                                                               \
        }                                                                                                              \
        TILE_RELEASE();                                                                                                \
    }                                                                                                                  \
    int64_t NAME##_loads(const void *from, int64_t window, int64_t n)                                                  \
    {                                                                                                                  \
        (void)from, (void)window, (void)n;                                                                             \
        return 0;                                                                                                      \
    }

PEAK(amx_bf16f32_peak, "tdpbf16ps")
PEAK(amx_i8i32_peak, "tdpbssd")
PEAK(amx_u8i8i32_peak, "tdpbusd")
