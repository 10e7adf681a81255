/* rocm_stub.c: as much of AMD's HIP runtime as CuPy asks for in our calls, on the host's own memory.
 *
 * Compilation goes to a real hiprtc (libamdhip64.so.5); a launch goes to the function that stub_on_launch() was given,
 * which executes the kernel in the simulator. Every other function that CuPy's wheel links against is generated next to
 * this file and fails with hipErrorNotSupported (rocm_stub.py).
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NO_DEVICE = 100 };

/* --- faults --- */

/* Of the calls that CuPy makes: allocations, launches, compilations, modules; GONE: all of them and synchronization. */
enum { FAULT_MALLOC = 1, FAULT_LAUNCH, FAULT_COMPILE, FAULT_MODULE, FAULT_GONE };
static int fault;
static long fault_at, fault_calls;
/* From now on, the nth call of a kind fails; of MALLOC also the two after it, of GONE all after it. */
void stub_fail(int kind, long nth) { fault = kind, fault_at = nth, fault_calls = 0; }
/* How many calls of the kind there were since then; none fails any more. */
long stub_repair(void) { return fault = 0, fault_calls; }
static int fails(int kind) {
    if (fault != kind && fault != FAULT_GONE) return 0;
    ++fault_calls;
    const long more = fault == FAULT_GONE ? 1 << 30 : fault == FAULT_MALLOC ? 2 : 0; /* CuPy tries three times */
    return fault_calls >= fault_at && fault_calls <= fault_at + more;
}

/* --- devices --- */

static const char* target(void) {
    const char* name = getenv("PYSIMD_STUB_TARGET");
    return name ? name : "gfx90a";
}
int hipGetDeviceCount(int* count) {
    *count = getenv("PYSIMD_STUB_NO_DEVICE") ? 0 : 1;
    return *count ? SUCCESS : NO_DEVICE;
}
int hipGetDevice(int* device) { return *device = 0, SUCCESS; }
int hipSetDevice(int device) { return device ? INVALID_VALUE : SUCCESS; }
int hipDeviceSynchronize(void) { return fails(FAULT_GONE) ? NO_DEVICE : SUCCESS; }
int hipDriverGetVersion(int* version) { return *version = 70051831, SUCCESS; }
int hipRuntimeGetVersion(int* version) { return *version = 70051831, SUCCESS; }
int hipDeviceGetAttribute(int* value, int attribute, int device) { return *value = 0, SUCCESS; }
int hipDeviceGetPCIBusId(char* id, int length, int device) { return snprintf(id, length, "0000:00:00.0"), SUCCESS; }
const char* hipGetErrorName(int error) { return error == NO_DEVICE ? "hipErrorNoDevice" : "hipError of the stub"; }
const char* hipGetErrorString(int error) { return error == NO_DEVICE ? "no ROCm-capable device is detected" : ""; }
int hipGetLastError(void) { return SUCCESS; }
int hipPeekAtLastError(void) { return SUCCESS; }

/* hipDeviceProp_tR0600 by the offsets of the fields that CuPy shows. */
int hipGetDevicePropertiesR0600(char* properties, int device) {
    memset(properties, 0, 1472);
    snprintf(properties, 256, "simulated %s", target());
    *(size_t*)(properties + 288) = (size_t)1 << 32;
    *(size_t*)(properties + 296) = 65536;
    *(int*)(properties + 308) = strncmp(target(), "gfx9", 4) ? 32 : 64;
    *(int*)(properties + 320) = 1024;
    *(int*)(properties + 360) = 9;
    *(int*)(properties + 388) = 64;
    snprintf(properties + 1160, 256, "%s:sramecc+:xnack-", target());
    return SUCCESS;
}

/* --- memory: the host's --- */

enum { MOST = 4096 };
static struct {
    char* at;
    size_t size;
} rooms[MOST];

int hipMalloc(void** pointer, size_t size) {
    if (fails(FAULT_MALLOC)) return fault == FAULT_GONE ? NO_DEVICE : OUT_OF_MEMORY;
    for (int i = 0; i < MOST; ++i)
        if (!rooms[i].at) {
            if (posix_memalign(pointer, 256, size ? size : 1)) return OUT_OF_MEMORY;
            memset(*pointer, 0xff, size); /* what nobody wrote is NaN */
            rooms[i].at = *pointer;
            rooms[i].size = size;
            return SUCCESS;
        }
    return OUT_OF_MEMORY;
}
int hipFree(void* pointer) {
    for (int i = 0; i < MOST; ++i)
        if (pointer && rooms[i].at == pointer) rooms[i].at = 0;
    free(pointer);
    return SUCCESS;
}
/* Address and size of room i, 0 if there is none. */
size_t stub_room(int i, char** at) { return i < MOST && (*at = rooms[i].at) ? rooms[i].size : 0; }
int stub_rooms(void) { return MOST; }

/* Whose memory it is: of the device (2), or unknown to HIP (0). */
int hipPointerGetAttributes(int* attributes, const char* pointer) {
    memset(attributes, 0, 32);
    for (int i = 0; i < MOST; ++i)
        if (rooms[i].at && rooms[i].at <= pointer && pointer < rooms[i].at + rooms[i].size) attributes[0] = 2;
    return SUCCESS;
}
int hipHostMalloc(void** pointer, size_t size, unsigned flags) {
    return (*pointer = malloc(size ? size : 1)) ? SUCCESS : OUT_OF_MEMORY;
}
int hipHostFree(void* pointer) { return free(pointer), SUCCESS; }
int hipMemcpy(void* to, const void* from, size_t size, int kind) { return memmove(to, from, size), SUCCESS; }
int hipMemcpyAsync(void* to, const void* from, size_t size, int kind) { return memmove(to, from, size), SUCCESS; }
int hipMemset(void* to, int value, size_t size) { return memset(to, value, size), SUCCESS; }
int hipMemsetAsync(void* to, int value, size_t size, void* s) { return memset(to, value, size), SUCCESS; }
int hipMemGetInfo(size_t* free_, size_t* total) { return *free_ = *total = (size_t)1 << 32, SUCCESS; }

/* --- streams and events: everything is done when it is asked for --- */

int hipStreamSynchronize(void* s) { return SUCCESS; }
int hipStreamQuery(void* s) { return SUCCESS; }
int hipStreamIsCapturing(void* s, int* status) { return *status = 0, SUCCESS; }
int hipStreamCreate(void** s) { return *s = malloc(1), SUCCESS; }
int hipStreamCreateWithFlags(void** s, unsigned flags) { return *s = malloc(1), SUCCESS; }
int hipStreamDestroy(void* s) { return free(s), SUCCESS; }
int hipEventCreate(void** e) { return *e = malloc(1), SUCCESS; }
int hipEventCreateWithFlags(void** e, unsigned flags) { return *e = malloc(1), SUCCESS; }
int hipEventDestroy(void* e) { return free(e), SUCCESS; }
int hipEventRecord(void* e, void* s) { return SUCCESS; }
int hipEventQuery(void* e) { return SUCCESS; }
int hipEventSynchronize(void* e) { return SUCCESS; }

/* --- modules --- */

typedef struct {
    const void* code;
    char name[512];
} Function;
typedef int (*Launch)(const void* code, const char* name, const unsigned* grid, const unsigned* block, unsigned lds,
                      void** arguments);
static Launch on_launch;
void stub_on_launch(Launch f) { on_launch = f; }

/* The file's own header tells how long it is: the section headers come last. */
int hipModuleLoadData(void** module, const char* image) {
    if (fails(FAULT_MODULE)) return fault == FAULT_GONE ? NO_DEVICE : OUT_OF_MEMORY;
    size_t size = *(size_t*)(image + 40) + (size_t)*(unsigned short*)(image + 58) * *(unsigned short*)(image + 60);
    *module = malloc(size);
    memcpy(*module, image, size);
    return SUCCESS;
}
int hipModuleUnload(void* module) { return SUCCESS; } /* functions of it may live on */
int hipModuleGetFunction(void** function, void* module, const char* name) {
    Function* f = malloc(sizeof *f);
    f->code = module;
    snprintf(f->name, sizeof f->name, "%s", name);
    *function = f;
    return SUCCESS;
}
int hipFuncGetAttribute(int* value, int attribute, void* function) { return *value = 0, SUCCESS; }
int hipModuleLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                          unsigned lds, void* stream, void** arguments, void** extra) {
    const Function* f = function;
    if (fails(FAULT_LAUNCH)) return fault == FAULT_GONE ? NO_DEVICE : 719; /* hipErrorLaunchFailure */
    unsigned grid[3] = {gx, gy, gz}, block[3] = {bx, by, bz};
    return on_launch ? on_launch(f->code, f->name, grid, block, lds, arguments) : INVALID_VALUE;
}

/* --- hiprtc: the real one, with the target as an option --- */

static void* real(const char* name) {
    static void* library;
    if (!library) library = dlopen("libamdhip64.so.5", RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    void* found = library ? dlsym(library, name) : 0;
    if (!found) fprintf(stderr, "stub: no %s: %s\n", name, dlerror()), abort();
    return found;
}
#define FORWARD(name, parameters, arguments) \
    int name parameters { return ((int(*) parameters)real(#name)) arguments; }
FORWARD(hiprtcVersion, (int* major, int* minor), (major, minor))
FORWARD(hiprtcCreateProgram, (void** p, const char* s, const char* n, int h, const char** t, const char** i),
        (p, s, n, h, t, i))
FORWARD(hiprtcDestroyProgram, (void** p), (p))
FORWARD(hiprtcGetCodeSize, (void* p, size_t* size), (p, size))
FORWARD(hiprtcGetCode, (void* p, char* code), (p, code))
FORWARD(hiprtcGetProgramLogSize, (void* p, size_t* size), (p, size))
FORWARD(hiprtcGetProgramLog, (void* p, char* log), (p, log))
FORWARD(hiprtcAddNameExpression, (void* p, const char* e), (p, e))
FORWARD(hiprtcGetLoweredName, (void* p, const char* e, const char** name), (p, e, name))
const char* hiprtcGetErrorString(int error) { return ((const char* (*)(int))real("hiprtcGetErrorString"))(error); }
int hiprtcCompileProgram(void* program, int count, const char** options) {
    char arch[64];
    if (fails(FAULT_COMPILE)) return 11; /* HIPRTC_ERROR_INTERNAL_ERROR */
    const char** all = malloc((count + 1) * sizeof *all);
    snprintf(arch, sizeof arch, "--offload-arch=%s", target());
    memcpy(all, options, count * sizeof *all);
    all[count] = arch;
    int result = ((int (*)(void*, int, const char**))real("hiprtcCompileProgram"))(program, count + 1, all);
    free(all);
    return result;
}
