/* vec_amx.h: what the amx kernels are written with: eight tile registers of at most 16 rows of 64 bytes, and the
 * instructions that multiply two of them and add to a third. A row of A's tile is 16 groups of k, of 32 bits each, and
 * so is a column of B's.
 *
 * Assembly, and no intrinsics: those of gcc do not say that they read and write memory, and this way any compiler that
 * builds the other kernels builds these, without an option. */
#include <immintrin.h>

#include "../templates/kernel.h"

enum { TILE_ROWS = 16, TILE_GROUPS = 16, GROUP_BYTES = 4, TILE_ROW_BYTES = TILE_GROUPS * GROUP_BYTES };

/* The operand of ldtilecfg: rows and bytes of a row of each tile register. */
typedef struct {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} tile_config;
_Static_assert(sizeof(tile_config) == 64, "as the processor reads it");

/* Sets the shapes of all tiles, and all tiles to zero. It takes as long as twelve multiply-adds. */
#define TILE_CONFIGURE(CONFIG) __asm__ volatile("ldtilecfg %0" : : "m"(CONFIG) : "memory")
/* Back to the initial state: otherwise the system saves 8 KiB of tiles whenever it switches to another thread. */
#define TILE_RELEASE() __asm__ volatile("tilerelease" : :)

#define TILE_ZERO(TILE) __asm__ volatile("tilezero %%tmm" #TILE : :)
#define TILE_LOAD(TILE, FROM, STRIDE)                                                                                  \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #TILE : : "r"(FROM), "r"((int64_t)(STRIDE)) : "memory")
/* The same, of a tile that is not needed again soon: it does not evict what is in L1. */
#define TILE_LOAD_ONCE(TILE, FROM, STRIDE)                                                                             \
    __asm__ volatile("tileloaddt1 (%0,%1,1), %%tmm" #TILE : : "r"(FROM), "r"((int64_t)(STRIDE)) : "memory")
#define TILE_STORE(TILE, TO, STRIDE)                                                                                   \
    __asm__ volatile("tilestored %%tmm" #TILE ", (%0,%1,1)" : : "r"(TO), "r"((int64_t)(STRIDE)) : "memory")
/* C += A B: tdpbf16ps, tdpbssd, tdpbusd. */
#define TILE_MULTIPLY(INSTRUCTION, C, A, B)                                                                            \
    __asm__ volatile(INSTRUCTION " %%tmm" #B ", %%tmm" #A ", %%tmm" #C : :)

/* x + y, sixteen elements of C: every processor with AMX has AVX-512. */
INLINE __m512i sum_of_f32(__m512i x, __m512i y)
{
    return _mm512_castps_si512(_mm512_add_ps(_mm512_castsi512_ps(x), _mm512_castsi512_ps(y)));
}
INLINE __m512i sum_of_i32(__m512i x, __m512i y) { return _mm512_add_epi32(x, y); }
