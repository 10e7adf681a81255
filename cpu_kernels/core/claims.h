/* claims.h: items that threads take, each first those that are always its own. */
#ifndef PYSIMD_CLAIMS_H
#define PYSIMD_CLAIMS_H

#include <stdatomic.h>
#include <stdint.h>

/* How many items of a thread were taken. One for each thread, zeros before the first item. */
typedef struct {
    _Alignas(64) _Atomic int64_t taken;
} pysimd_claim;

/* One of `items` that nobody has taken: the next of the thread's own, or of the next thread that has any left. So a
 * thread has the same items in every call like this, whose operands and result may still be in its L2, unless it comes
 * late. To be called once for each item. */
static inline int64_t pysimd_take_item(pysimd_claim *claims, int threads, int64_t items, int thread)
{
    for (int of = thread;; of = (of + 1) % threads) {
        const int64_t first = items * of / threads, end = items * (of + 1) / threads;
        const int64_t item = first + atomic_fetch_add(&claims[of].taken, 1);
        if (item < end) return item;
    }
}

#endif
