/* small_bytes.h: the functions of core/small.h for int8 and uint8, products of 2 to 7 columns and K from 1 to 10, and
 * of 8 to MOST columns and K from 1 to MOST.
 *
 * A file sets PREFIX and ADD_PAIRS(acc, a, b), which adds pairs of int16 products to int32, and includes this file.
 * B's rows are interleaved in pairs of k and widened while they are loaded, eight or ten k at a time, and stay in
 * registers. A row of A is loaded into both lanes and widened, and its pairs are broadcast by shuffles of a lane. All
 * of it is exact; int32 wraps. No stack, no panels.
 *
 * The loops alone take 2.4 ns a product for 4x4 and 11.6 for 8x8 (Zen 3). Tried for 8x8: A widened on the stack (11.0,
 * but not for rows of another length); rows of C in pairs of lanes, as for 4x4 (12.1).
 */
#include "../core/small.h"
#include "kernel.h"

enum { MOST = 24, PIECE = 10 }; /* products of 31 and 32 were slower than with panels (Zen 3, 1.08 times as long) */

/* Partial rows. Two words that overlap hold a row: of four bytes for 4 to 7 columns, of two bytes for 2 and 3. A byte
 * shuffle puts the bytes of a pair of rows in order. A row of C is stored the same way. */
typedef struct {
    __m128i interleave; /* bytes of the first row in the lower half, of the second row in the upper half */
    __m256i last;       /* the last 4 (or 2) of n columns to the lowest lanes */
    int64_t at;         /* where the second word begins, in elements */
} columns;

INLINE columns columns_of(int n)
{
    if (n >= 8) return (columns){.at = 0};
    const int word = n >= 4 ? 4 : 2, at = n - word;
    char bytes[16];
    int32_t lanes[8] = {0};
    for (int j = 0; j < 8; j++) {
        const int from = j < word ? j : j < n ? 4 + j - at : 0;
        bytes[2 * j] = (char)(j < n ? from : -1), bytes[2 * j + 1] = (char)(j < n ? 8 + from : -1);
    }
    for (int j = 0; j < word; j++) lanes[j] = at + j;
    return (columns){_mm_loadu_si128((const __m128i *)bytes), _mm256_loadu_si256((const __m256i *)lanes), at};
}

INLINE __m128i load_words(const int word, const char *p, int64_t at)
{
    int16_t low, high;
    if (word == 4) return _mm_insert_epi32(_mm_cvtsi32_si128(get_i32(p)), get_i32(p + at), 1);
    memcpy(&low, p, 2), memcpy(&high, p + at, 2);
    return _mm_insert_epi16(_mm_cvtsi32_si128(low), high, 2);
}

/* Two rows of B, the second zeros if there is none: pairs of int16, a column in each 32-bit lane. */
INLINE __m256i pair_of_rows(const int word, int there, const char *b, int64_t rs, const columns *n)
{
    __m128i x, y = _mm_setzero_si128();
    if (word == 8) {
        x = _mm_loadl_epi64((const __m128i *)b);
        if (there > 1) y = _mm_loadl_epi64((const __m128i *)(b + rs));
        return _mm256_cvtepi8_epi16(_mm_unpacklo_epi8(x, y));
    }
    x = load_words(word, b, n->at);
    if (there > 1) y = load_words(word, b + rs, n->at);
    return _mm256_cvtepi8_epi16(_mm_shuffle_epi8(_mm_unpacklo_epi64(x, y), n->interleave));
}

INLINE void store_columns(const int word, int32_t *c, __m256i v, const columns *n)
{
    if (word == 8) {
        _mm256_storeu_si256((__m256i *)c, v);
        return;
    }
    const __m128i low = _mm256_castsi256_si128(v);
    const __m128i last = _mm256_castsi256_si128(_mm256_permutevar8x32_epi32(v, n->last));
    if (word == 4)
        _mm_storeu_si128((__m128i *)c, low), _mm_storeu_si128((__m128i *)(c + n->at), last);
    else
        _mm_storel_epi64((__m128i *)c, low), _mm_storel_epi64((__m128i *)(c + n->at), last);
}

/* `count` values of A, 1 to 8, in the lower half. The partner of an odd last one is multiplied by zeros of B. */
INLINE __m128i load_values(const int count, const char *p)
{
    int16_t low = 0;
    switch (count) {
    case 8: return _mm_loadl_epi64((const __m128i *)p);
    case 7: return _mm_insert_epi32(_mm_cvtsi32_si128(get_i32(p)), (int)((uint32_t)get_i32(p + 3) >> 8), 1);
    case 6: memcpy(&low, p + 4, 2); return _mm_insert_epi16(_mm_cvtsi32_si128(get_i32(p)), low, 2);
    case 5: return _mm_insert_epi16(_mm_cvtsi32_si128(get_i32(p)), (uint8_t)p[4], 2);
    case 4: return _mm_cvtsi32_si128(get_i32(p));
    case 3: memcpy(&low, p, 2); return _mm_insert_epi16(_mm_cvtsi32_si128(low), (uint8_t)p[2], 1);
    case 2: memcpy(&low, p, 2); return _mm_cvtsi32_si128(low);
    default: return _mm_cvtsi32_si128((uint8_t)p[0]);
    }
}

INLINE __m256i both_lanes(const int is_signed, __m128i v)
{
    v = _mm_broadcastq_epi64(v);
    return is_signed ? _mm256_cvtepi8_epi16(v) : _mm256_cvtepu8_epi16(v);
}

/* The ninth and tenth value, as a pair in every lane. */
INLINE __m256i last_pair(const int is_signed, const int count, const char *p)
{
    const __m128i v = load_values(count, p);
    return _mm256_broadcastd_epi32(is_signed ? _mm_cvtepi8_epi16(v) : _mm_cvtepu8_epi16(v));
}

#define PAIR(P)                                                                                                        \
    if (2 * P < k) {                                                                                                   \
        const __m256i x = P == 4 ? last : _mm256_shuffle_epi32(values, 0x55 * (P % 4));                                \
        acc = ADD_PAIRS(acc, x, row[P]);                                                                               \
        if (word == 16) second = ADD_PAIRS(second, x, row[5 + P]);                                                     \
    }

/* Up to ten k of one product, of up to 16 columns: those from the ninth on, at column `at`, overlap the ones before. k,
 * the word and the sign are constants. `adds`: to C, which is whole words of 8 then. */
INLINE void product(const int is_signed, const int word, const int k, const int adds, const pysimd_call *s, int64_t at,
                    const columns *n, const char *a, const char *b, int32_t *c)
{
    __m256i row[10];
    UNROLL for (int p = 0; p < k; p += 2) {
        row[p / 2] = pair_of_rows(word < 8 ? word : 8, k - p, b + p * s->rs_b, s->rs_b, n);
        if (word == 16) row[5 + p / 2] = pair_of_rows(8, k - p, b + p * s->rs_b + at, s->rs_b, n);
    }
    for (int64_t r = 0; r < s->m; r++, a += s->rs_a, c += s->rs_c) {
        const __m256i values = both_lanes(is_signed, load_values(k < 8 ? k : 8, a));
        const __m256i last = k > 8 ? last_pair(is_signed, k - 8, a + 8) : values;
        __m256i acc = _mm256_setzero_si256(), second = acc;
        if (adds) {
            acc = _mm256_loadu_si256((const __m256i *)c);
            if (word == 16) second = _mm256_loadu_si256((const __m256i *)(c + at));
        }
        PAIR(0) PAIR(1) PAIR(2) PAIR(3) PAIR(4)
        store_columns(word < 8 ? word : 8, c, acc, n);
        if (word == 16) store_columns(8, c + at, second, n);
    }
}

/* Products of one piece. */
INLINE void loop(const int is_signed, const int word, const int k, const pysimd_call *s)
{
    const char *a = s->a, *b = s->b;
    int32_t *c = s->c;
    const columns n = columns_of((int)s->n);
    for (int64_t i = 0; i < s->batch; i++, a += s->bs_a, b += s->bs_b, c += s->bs_c)
        product(is_signed, word, k, 0, s, s->n - 8, &n, a, b, c);
}

/* Pieces of larger products: up to 16 columns and eight or ten k. So many that there are fewest of them. */
typedef void piece_fn(const pysimd_call *s, int64_t at, const char *a, const char *b, int32_t *c);

INLINE void loop_of_pieces(piece_fn *const pieces[2][2][PIECE], const pysimd_call *s)
{
    const int64_t k = s->k, most = (k + 7) / 8 == (k + 9) / 10 ? 8 : 10;
    const char *a = s->a, *b = s->b;
    int32_t *c = s->c;
    for (int64_t i = 0; i < s->batch; i++, a += s->bs_a, b += s->bs_b, c += s->bs_c)
        for (int64_t j = 0; j < s->n; j += 16) {
            const int64_t left = s->n - j, two = left > 8, first = two ? j : s->n - 8, at = left < 16 ? left - 8 : 8;
            for (int64_t p = 0; p < k; p += most)
                pieces[two][p > 0][(k - p < most ? k - p : most) - 1](s, at, a + p, b + p * s->rs_b + first, c + first);
        }
}

/* 4x4x4 of dense matrices: two rows of C in a register, each pair of rows of B in both lanes. */
INLINE void loop_4x4(const int is_signed, const pysimd_call *s)
{
    const __m128i interleave = _mm_setr_epi8(0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15);
    const char *a = s->a, *b = s->b;
    int32_t *c = s->c;
    for (int64_t i = 0; i < s->batch; i++, a += s->bs_a, b += s->bs_b, c += s->bs_c) {
        /* rows 0 and 2 in the lower lane, 1 and 3 in the upper one */
        const __m128i rows = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)a), 0xd8);
        const __m256i x = is_signed ? _mm256_cvtepi8_epi16(rows) : _mm256_cvtepu8_epi16(rows);
        const __m256i y = _mm256_cvtepi8_epi16(_mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)b), interleave));
        const __m256i y01 = _mm256_permute4x64_epi64(y, 0x44), y23 = _mm256_permute4x64_epi64(y, 0xee);
        const __m256i zero = _mm256_setzero_si256();
        __m256i c01 = ADD_PAIRS(zero, _mm256_shuffle_epi32(x, 0x00), y01);
        __m256i c23 = ADD_PAIRS(zero, _mm256_shuffle_epi32(x, 0xaa), y01);
        c01 = ADD_PAIRS(c01, _mm256_shuffle_epi32(x, 0x55), y23);
        c23 = ADD_PAIRS(c23, _mm256_shuffle_epi32(x, 0xff), y23);
        _mm256_storeu_si256((__m256i *)c, c01);
        _mm256_storeu_si256((__m256i *)(c + 8), c23);
    }
}

/* A function for each K, so that the pairs of B are registers. */
#define LOOP(NAME, SIGNED, WORD, K)                                                                                    \
    NOINLINE void NAME##_##WORD##_##K(const pysimd_call *s) { loop(SIGNED, WORD, K, s); }
#define LOOPS(NAME, SIGNED, WORD)                                                                                      \
    LOOP(NAME, SIGNED, WORD, 1) LOOP(NAME, SIGNED, WORD, 2) LOOP(NAME, SIGNED, WORD, 3) LOOP(NAME, SIGNED, WORD, 4)    \
    LOOP(NAME, SIGNED, WORD, 5) LOOP(NAME, SIGNED, WORD, 6) LOOP(NAME, SIGNED, WORD, 7) LOOP(NAME, SIGNED, WORD, 8)    \
    LOOP(NAME, SIGNED, WORD, 9) LOOP(NAME, SIGNED, WORD, 10)
#define EACH_K(F)                                                                                                      \
    {                                                                                                                  \
        F##_1, F##_2, F##_3, F##_4, F##_5, F##_6, F##_7, F##_8, F##_9, F##_10                                          \
    }
#define A_PIECE(NAME, SIGNED, WORD, ADDS, K)                                                                           \
    NOINLINE void NAME##_piece_##WORD##_##ADDS##_##K(const pysimd_call *s, int64_t at, const char *a, const char *b,   \
                                                     int32_t *c)                                                       \
    {                                                                                                                  \
        product(SIGNED, WORD, K, ADDS, s, at, NULL, a, b, c);                                                          \
    }
#define PIECES(NAME, SIGNED, WORD, ADDS)                                                                               \
    A_PIECE(NAME, SIGNED, WORD, ADDS, 1) A_PIECE(NAME, SIGNED, WORD, ADDS, 2) A_PIECE(NAME, SIGNED, WORD, ADDS, 3)     \
    A_PIECE(NAME, SIGNED, WORD, ADDS, 4) A_PIECE(NAME, SIGNED, WORD, ADDS, 5) A_PIECE(NAME, SIGNED, WORD, ADDS, 6)     \
    A_PIECE(NAME, SIGNED, WORD, ADDS, 7) A_PIECE(NAME, SIGNED, WORD, ADDS, 8) A_PIECE(NAME, SIGNED, WORD, ADDS, 9)     \
    A_PIECE(NAME, SIGNED, WORD, ADDS, 10)

#define SMALL_BYTES(NAME, SIGNED)                                                                                      \
    LOOPS(NAME, SIGNED, 2)                                                                                             \
    LOOPS(NAME, SIGNED, 4)                                                                                             \
    LOOPS(NAME, SIGNED, 8)                                                                                             \
    LOOPS(NAME, SIGNED, 16)                                                                                            \
    PIECES(NAME, SIGNED, 8, 0)                                                                                         \
    PIECES(NAME, SIGNED, 8, 1)                                                                                         \
    PIECES(NAME, SIGNED, 16, 0)                                                                                        \
    PIECES(NAME, SIGNED, 16, 1)                                                                                        \
    static pysimd_batch_fn *const NAME##_loops[4][PIECE] = {EACH_K(NAME##_2), EACH_K(NAME##_4), EACH_K(NAME##_8),      \
                                                            EACH_K(NAME##_16)};                                        \
    static piece_fn *const NAME##_pieces[2][2][PIECE] = {{EACH_K(NAME##_piece_8_0), EACH_K(NAME##_piece_8_1)},         \
                                                         {EACH_K(NAME##_piece_16_0), EACH_K(NAME##_piece_16_1)}};      \
    NOINLINE void NAME##_4x4(const pysimd_call *s) { loop_4x4(SIGNED, s); }                                            \
    int PASTE(PREFIX, NAME)(const pysimd_call *s, int64_t cs_b)                                                        \
    {                                                                                                                  \
        const int whole = s->n >= 8; /* words of 8 columns */                                                          \
        if (s->n < 2 || s->n > MOST || s->k < 1 || s->k > (whole ? MOST : PIECE) || s->cs_a != 1 || cs_b != 1)         \
            return 0;                                                                                                  \
        const int dense = s->rs_a == 4 && s->rs_b == 4 && s->rs_c == 4;                                                \
        if (dense && s->m == 4 && s->n == 4 && s->k == 4)                                                              \
            NAME##_4x4(s);                                                                                             \
        else if (s->n > 16 || s->k > PIECE)                                                                            \
            loop_of_pieces(NAME##_pieces, s);                                                                          \
        else                                                                                                           \
            NAME##_loops[(s->n >= 4) + whole + (s->n > 8)][s->k - 1](s);                                               \
        return 1;                                                                                                      \
    }
SMALL_BYTES(i8, 1)
SMALL_BYTES(u8i8, 0)
