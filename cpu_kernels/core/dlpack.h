/* dlpack.h: what tensors.c uses of DLPack 1.2 (https://dmlc.github.io/dlpack), whose structs and functions are a stable
 * ABI; the field names are DLPack's. */
#ifndef PYSIMD_DLPACK_H
#define PYSIMD_DLPACK_H

#include <stdint.h>

enum { DLPACK_MAJOR = 1, DLPACK_CPU = 1, DLPACK_CUDA = 2, DLPACK_ROCM = 10 };
enum { DLPACK_INT = 0, DLPACK_UINT = 1, DLPACK_FLOAT = 2, DLPACK_BFLOAT = 4 };

typedef struct {
    uint32_t major, minor;
} dlpack_version;

typedef struct {
    uint8_t code, bits;
    uint16_t lanes;
} dlpack_dtype;

typedef struct {
    void *data;
    struct {
        int32_t type, id;
    } device;
    int32_t ndim;
    dlpack_dtype dtype;
    int64_t *shape, *strides; /* strides count elements */
    uint64_t byte_offset;
} dlpack_tensor;

typedef struct dlpack_managed {
    dlpack_version version;
    void *manager_ctx;
    void (*deleter)(struct dlpack_managed *self);
    uint64_t flags;
    dlpack_tensor tensor;
} dlpack_managed;

/* The capsule "dlpack_exchange_api" of a type of tensors. The functions return 0, or -1 with a Python exception. */
typedef struct {
    dlpack_version version;
    void *prev_api;
    int (*allocate)(dlpack_tensor *, dlpack_managed **, void *, void (*)(void *, const char *, const char *));
    int (*managed_from_object)(void *object, dlpack_managed **out);
    int (*object_from_managed)(dlpack_managed *tensor, void **object); /* takes the managed tensor */
    int (*view_of_object)(void *object, dlpack_tensor *out);           /* valid while the object is; may be NULL */
    int (*current_stream)(int32_t device_type, int32_t device_id, void **stream);
} dlpack_exchange;

#endif
