/* faults.c: one allocation, or one new thread, that the system refuses. To be preloaded (LD_PRELOAD).
 *
 * Only requests from watched address ranges (the shared library under test) are counted and can be refused. Memory that
 * they get is followed until it is freed, by whomever.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

enum { RANGES = 8, MOST = 1 << 14 };
enum { NOTHING, MEMORY, THREAD, HANDLER }; /* what was refused */

static struct {
    uintptr_t from, to;
} ranges[RANGES];
static int range_count;
static _Atomic long countdown; /* requests to the one that is refused; 0 and less: none is */
static _Atomic int refused;
static void *_Atomic live[MOST]; /* open addressing; REMOVED where a pointer was */
#define REMOVED ((void *)1)

void faults_watch(uintptr_t from, uintptr_t to)
{
    if (range_count < RANGES) ranges[range_count].from = from, ranges[range_count].to = to, range_count++;
}

void faults_refuse(long nth) { atomic_store(&refused, NOTHING), atomic_store(&countdown, nth); }

int faults_refused(void)
{
    atomic_store(&countdown, 0);
    return atomic_load(&refused);
}

long faults_live(void)
{
    long count = 0;
    for (int i = 0; i < MOST; i++) {
        void *p = atomic_load(&live[i]);
        count += p && p != REMOVED;
    }
    return count;
}

static int watched(const void *caller)
{
    for (int i = 0; i < range_count; i++)
        if ((uintptr_t)caller >= ranges[i].from && (uintptr_t)caller < ranges[i].to) return 1;
    return 0;
}

static int refuses(const void *caller, int what)
{
    if (!watched(caller) || atomic_load(&countdown) <= 0 || atomic_fetch_sub(&countdown, 1) != 1) return 0;
    atomic_store(&refused, what);
    return 1;
}

static int place(const void *p) { return (int)(((uintptr_t)p >> 4) * 2654435761u % MOST); }

static void *follow(const void *caller, void *p)
{
    if (p && watched(caller))
        for (int i = place(p), n = 0; n < MOST; i = (i + 1) % MOST, n++) {
            void *found = atomic_load(&live[i]);
            if ((!found || found == REMOVED) && atomic_compare_exchange_strong(&live[i], &found, p)) break;
        }
    return p;
}

static void forget(void *p)
{
    if (!p || !range_count) return;
    for (int i = place(p), n = 0; n < MOST; i = (i + 1) % MOST, n++) {
        void *found = atomic_load(&live[i]);
        if (!found) return;
        if (found == p) {
            atomic_store(&live[i], REMOVED);
            return;
        }
    }
}

#define CALLER __builtin_return_address(0)
#define GIVEN(ALLOCATION) (refuses(CALLER, MEMORY) ? (errno = ENOMEM, NULL) : follow(CALLER, ALLOCATION))

void *malloc(size_t size) { return GIVEN(__libc_malloc(size)); }
void *calloc(size_t count, size_t size) { return GIVEN(__libc_calloc(count, size)); }
void *aligned_alloc(size_t alignment, size_t size) { return GIVEN(__libc_memalign(alignment, size)); }
void *memalign(size_t alignment, size_t size) { return GIVEN(__libc_memalign(alignment, size)); }

int posix_memalign(void **p, size_t alignment, size_t size)
{
    return (*p = GIVEN(__libc_memalign(alignment, size))) ? 0 : ENOMEM;
}

void *realloc(void *p, size_t size)
{
    if (refuses(CALLER, MEMORY)) return errno = ENOMEM, NULL;
    void *moved = __libc_realloc(p, size);
    if (moved || !size) forget(p);
    return follow(CALLER, moved);
}

void free(void *p)
{
    forget(p);
    __libc_free(p);
}

void *mmap(void *at, size_t size, int protection, int flags, int file, long offset)
{
    typedef void *mmap_fn(void *, size_t, int, int, int, long);
    static mmap_fn *real;
    if (!real) real = (mmap_fn *)dlsym(RTLD_NEXT, "mmap");
    return refuses(CALLER, MEMORY) ? (errno = ENOMEM, (void *)-1) : real(at, size, protection, flags, file, offset);
}

int pthread_create(pthread_t *id, const pthread_attr_t *how, void *(*run)(void *), void *argument)
{
    typedef int create_fn(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    static create_fn *real;
    if (!real) real = (create_fn *)dlsym(RTLD_NEXT, "pthread_create");
    return refuses(CALLER, THREAD) ? EAGAIN : real(id, how, run, argument);
}

/* What pthread_atfork calls. */
int __register_atfork(void (*before)(void), void (*parent)(void), void (*child)(void), void *library)
{
    typedef int register_fn(void (*)(void), void (*)(void), void (*)(void), void *);
    static register_fn *real;
    if (!real) real = (register_fn *)dlsym(RTLD_NEXT, "__register_atfork");
    return refuses(CALLER, HANDLER) ? ENOMEM : real(before, parent, child, library);
}
