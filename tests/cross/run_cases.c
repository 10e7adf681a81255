/* run_cases.c: the CPU kernels without Python, for processors that are emulated.
 *
 *     run_cases list [BOUND]   the CPU's features, the rows of the table as they are here, and what dispatch chooses
 *     run_cases run            products from standard input, results to standard output
 *
 * A product is a `product_case`, then the bytes of A, B and C. Each operand is placed between unreadable pages, at the
 * last bytes before the second or at the first bytes after the first; A and B are then read-only. The answer is a
 * status and the bytes of C. Registry, driver and kernels are those of the extension. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/driver.h"

enum { RUN, MULTIPLY };
enum { ENDING_AT_GUARD, STARTING_AT_GUARD };
enum { DIMS = 4, MOST_NAME = 64 };
enum { CANNOT_RUN = -3, BYTES_AROUND_C_WRITTEN = -4 };

typedef struct {
    char name[MOST_NAME]; /* empty: the kernel that dispatch chooses */
    int64_t what, types, place, m, n, k, rs_a, cs_a, rs_b, cs_b, rs_c;
    int64_t ndim, shape[DIMS], batch_a[DIMS], batch_b[DIMS], batch_c[DIMS];
    int64_t flags, threads;
    double alpha, beta;
    int64_t bytes[3], offset[3]; /* of A, B and C: of all of their memory, and where their first element is in it */
} product_case;

typedef struct {
    char *usable, *data;
    int64_t size, bytes;
} guarded;

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static void read_all(void *to, int64_t bytes)
{
    if (bytes && fread(to, (size_t)bytes, 1, stdin) != 1) fail("standard input ends within a product");
}

/* `bytes` bytes from standard input between two unreadable pages, everything around them 0xff. */
static guarded place(int64_t bytes, int64_t where)
{
    const int64_t page = sysconf(_SC_PAGESIZE), size = (bytes + page) / page * page;
    char *all = mmap(NULL, (size_t)(size + 2 * page), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) fail("mmap");
    guarded g = {.usable = all + page, .size = size, .bytes = bytes};
    g.data = g.usable + (where == ENDING_AT_GUARD ? size - bytes : 0);
    memset(g.usable, 0xff, (size_t)size);
    read_all(g.data, bytes);
    if (mprotect(all, (size_t)page, PROT_NONE) || mprotect(g.usable + size, (size_t)page, PROT_NONE)) fail("mprotect");
    return g;
}

static int is_untouched_around(const guarded *g)
{
    for (int64_t i = 0; i < g->size; i++)
        if ((g->usable + i < g->data || g->usable + i >= g->data + g->bytes) && g->usable[i] != (char)0xff) return 0;
    return 1;
}

static void release(const guarded *g)
{
    const int64_t page = sysconf(_SC_PAGESIZE);
    munmap(g->usable - page, (size_t)(g->size + 2 * page));
}

static const pysimd_kernel *kernel_of(const product_case *p)
{
    if (!p->name[0]) return pysimd_choose((int)p->types, p->m, p->n, p->k);
    for (int i = 0; i < pysimd_kernel_count; i++)
        if (!strcmp(pysimd_kernels[i].name, p->name)) return pysimd_kernels + i;
    fprintf(stderr, "no kernel %s\n", p->name);
    exit(1);
}

static int64_t computed(const product_case *p, const char *a, const char *b, char *c)
{
    const pysimd_kernel *kernel = kernel_of(p);
    if (!pysimd_can_run(kernel)) return CANNOT_RUN;
    if (p->what == RUN) {
        kernel->run(p->k, a, p->rs_a, p->cs_a, b, p->rs_b, c, p->rs_c);
        return 0;
    }
    pysimd_product product = {.m = p->m, .n = p->n, .k = p->k, .a = a, .rs_a = p->rs_a, .cs_a = p->cs_a, .b = b,
                              .rs_b = p->rs_b, .cs_b = p->cs_b, .c = c, .rs_c = p->rs_c, .cs_c = 1,
                              .ndim = (int)p->ndim, .flags = (int)p->flags, .threads = (int)p->threads,
                              .alpha = p->alpha, .beta = p->beta};
    for (int d = 0; d < p->ndim; d++) {
        product.shape[d] = p->shape[d], product.batch_a[d] = p->batch_a[d];
        product.batch_b[d] = p->batch_b[d], product.batch_c[d] = p->batch_c[d];
    }
    return pysimd_multiply(kernel, &product);
}

static void run(void)
{
    product_case p;
    while (fread(&p, sizeof p, 1, stdin) == 1) {
        guarded memory[3];
        for (int i = 0; i < 3; i++) memory[i] = place(p.bytes[i], p.place);
        for (int i = 0; i < 2; i++)
            if (mprotect(memory[i].usable, (size_t)memory[i].size, PROT_READ)) fail("mprotect");
        int64_t status = computed(&p, memory[0].data + p.offset[0], memory[1].data + p.offset[1],
                                  memory[2].data + p.offset[2]);
        if (status == 0 && !is_untouched_around(memory + 2)) status = BYTES_AROUND_C_WRITTEN;
        fwrite(&status, sizeof status, 1, stdout);
        fwrite(memory[2].data, (size_t)p.bytes[2], 1, stdout);
        fflush(stdout); /* a crash in the next product leaves this result */
        for (int i = 0; i < 3; i++) release(memory + i);
    }
}

static void list(void)
{
    enum { MOST_COLUMNS = 70 };
    const uint64_t features = pysimd_cpu_features();
    printf("features");
    for (int i = 0; i < pysimd_feature_count; i++)
        if (features >> i & 1) printf(" %s", pysimd_feature_names[i]);
    for (int i = 0; i < pysimd_kernel_count; i++) {
        const pysimd_kernel *kernel = pysimd_kernels + i;
        printf("\nkernel %s %d %d %d", kernel->name, kernel->mr, kernel->nr, pysimd_can_run(kernel));
    }
    for (int types = 0; types < TYPES; types++) {
        if (!pysimd_choose(types, 2, 1, 1)) continue; /* of this family kernels are taken by name alone */
        printf("\nchosen %d", types);
        for (int n = 0; n <= MOST_COLUMNS; n++) printf(" %s", pysimd_choose(types, 2, n, 1)->name);
    }
    printf("\n");
}

int main(int count, char **words)
{
    int bound = TARGETS - 1;
    for (int i = 0; count > 2 && i < TARGETS; i++)
        if (!strcmp(words[2], pysimd_targets[i].name)) bound = i;
    pysimd_start(bound);
    if (count > 1 && !strcmp(words[1], "list"))
        list();
    else
        run();
    return 0;
}
