/* Fails, kills at, or cuts short the n-th system call of a process: loaded with LD_PRELOAD, and armed by `faults_arm`.
 *
 * Calls on files count only if the file is below a folder, so that the interpreter's own imports do not count.
 * Mappings and allocations count if they have a least size. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* The order is that of `KINDS` in shim.py. */
enum { OPEN, CREATE, READ, WRITE, SYNC, RENAME, MKDIR, UNLINK, TRUNCATE, LOCK, LIST, MAP, ALLOCATE, KINDS };
enum { FAIL, FAIL_ALWAYS, KILL, CUT };
enum { DESCRIPTORS = 65536 };

/* In memory that the parent shares, so that it can read the counts after the process has ended. */
struct report {
    long counted;
    long hit;
    long by_kind[KINDS];
};

static struct report *report;
static char folder[4096];
static unsigned kinds;
static long target;
static int action, failure;
static size_t smallest;
static double clock_shift;
static long clock_shift_after, clock_calls;
static unsigned char below[DESCRIPTORS];

void faults_arm(struct report *shared, const char *root, unsigned kind_bits, long number, int what, int code,
                size_t least_size) {
    strncpy(folder, root, sizeof folder - 1);
    kinds = kind_bits;
    target = number;
    action = what;
    failure = code;
    smallest = least_size;
    report = shared;
}

/* After `after` readings of the time of day, the clock is `seconds` ahead (or behind). */
void faults_shift_clock(double seconds, long after) {
    clock_shift_after = after;
    clock_shift = seconds;
}

/* Counts a call. Returns 1 if it has to fail with `errno` set, 2 if it has to be cut short. */
static int strikes(int kind) {
    if (!report || !(kinds >> kind & 1))
        return 0;
    __atomic_add_fetch(&report->by_kind[kind], 1, __ATOMIC_SEQ_CST);
    long number = __atomic_add_fetch(&report->counted, 1, __ATOMIC_SEQ_CST);
    if (number != target && !(action == FAIL_ALWAYS && target && number > target))
        return 0;
    __atomic_add_fetch(&report->hit, 1, __ATOMIC_SEQ_CST);
    if (action == KILL)
        syscall(SYS_kill, getpid(), SIGKILL);
    if (action == CUT)
        return 2;
    errno = failure;
    return 1;
}

static int is_below(const char *path) {
    size_t length = strlen(folder);
    return report && path && length && !strncmp(path, folder, length) && (path[length] == '/' || !path[length]);
}

static int is_descriptor_below(int descriptor) {
    return report && descriptor >= 0 && descriptor < DESCRIPTORS && below[descriptor];
}

static int is_at_below(int parent, const char *path) {
    return path && path[0] == '/' ? is_below(path) : is_descriptor_below(parent);
}

static int note(int descriptor, int is_counted) {
    if (descriptor >= 0 && descriptor < DESCRIPTORS)
        below[descriptor] = (unsigned char)is_counted;
    return descriptor;
}

static int open_at(int parent, const char *path, int flags, mode_t mode) {
    int counted = is_at_below(parent, path);
    if (counted && strikes(flags & O_CREAT ? CREATE : OPEN) == 1)
        return -1;
    return note((int)syscall(SYS_openat, parent, path, flags, mode), counted);
}

#define MODE(flags, mode)                                                                                              \
    mode_t mode = 0;                                                                                                   \
    if ((flags) & (O_CREAT | O_TMPFILE)) {                                                                             \
        va_list rest;                                                                                                  \
        va_start(rest, flags);                                                                                         \
        mode = va_arg(rest, mode_t);                                                                                   \
        va_end(rest);                                                                                                  \
    }

int open(const char *path, int flags, ...) {
    MODE(flags, mode)
    return open_at(AT_FDCWD, path, flags, mode);
}

int open64(const char *path, int flags, ...) {
    MODE(flags, mode)
    return open_at(AT_FDCWD, path, flags | O_LARGEFILE, mode);
}

int openat(int parent, const char *path, int flags, ...) {
    MODE(flags, mode)
    return open_at(parent, path, flags, mode);
}

int openat64(int parent, const char *path, int flags, ...) {
    MODE(flags, mode)
    return open_at(parent, path, flags | O_LARGEFILE, mode);
}

#define NEXT(type, name, arguments)                                                                                    \
    static type(*next) arguments;                                                                                      \
    if (!next)                                                                                                         \
        next = (type(*) arguments)dlsym(RTLD_NEXT, #name);

int close(int descriptor) {
    NEXT(int, close, (int))
    note(descriptor, 0);
    return next(descriptor);
}

ssize_t write(int descriptor, const void *bytes, size_t size) {
    NEXT(ssize_t, write, (int, const void *, size_t))
    int struck = is_descriptor_below(descriptor) ? strikes(WRITE) : 0;
    return struck == 1 ? -1 : next(descriptor, bytes, struck == 2 && size > 1 ? size / 2 : size);
}

#define WRITE_AT(name, offset_type)                                                                                    \
    ssize_t name(int descriptor, const void *bytes, size_t size, offset_type offset) {                                 \
        NEXT(ssize_t, name, (int, const void *, size_t, offset_type))                                                  \
        int struck = is_descriptor_below(descriptor) ? strikes(WRITE) : 0;                                             \
        return struck == 1 ? -1 : next(descriptor, bytes, struck == 2 && size > 1 ? size / 2 : size, offset);          \
    }
WRITE_AT(pwrite, off_t)
WRITE_AT(pwrite64, off64_t)

ssize_t writev(int descriptor, const struct iovec *parts, int count) {
    NEXT(ssize_t, writev, (int, const struct iovec *, int))
    return is_descriptor_below(descriptor) && strikes(WRITE) == 1 ? -1 : next(descriptor, parts, count);
}

ssize_t read(int descriptor, void *bytes, size_t size) {
    NEXT(ssize_t, read, (int, void *, size_t))
    int struck = is_descriptor_below(descriptor) ? strikes(READ) : 0;
    return struck == 1 ? -1 : next(descriptor, bytes, struck == 2 && size > 1 ? size / 2 : size);
}

FILE *fopen(const char *path, const char *mode) {
    NEXT(FILE *, fopen, (const char *, const char *))
    return is_below(path) && strikes(mode[0] == 'r' ? OPEN : CREATE) == 1 ? NULL : next(path, mode);
}

FILE *fopen64(const char *path, const char *mode) {
    NEXT(FILE *, fopen64, (const char *, const char *))
    return is_below(path) && strikes(mode[0] == 'r' ? OPEN : CREATE) == 1 ? NULL : next(path, mode);
}

DIR *opendir(const char *path) {
    NEXT(DIR *, opendir, (const char *))
    return is_below(path) && strikes(LIST) == 1 ? NULL : next(path);
}

DIR *fdopendir(int descriptor) {
    NEXT(DIR *, fdopendir, (int))
    return is_descriptor_below(descriptor) && strikes(LIST) == 1 ? NULL : next(descriptor);
}

#define ON_DESCRIPTOR(name, kind, parameters, arguments)                                                               \
    int name parameters {                                                                                              \
        NEXT(int, name, parameters)                                                                                    \
        return is_descriptor_below(descriptor) && strikes(kind) == 1 ? -1 : next arguments;                            \
    }
ON_DESCRIPTOR(fsync, SYNC, (int descriptor), (descriptor))
ON_DESCRIPTOR(fdatasync, SYNC, (int descriptor), (descriptor))
ON_DESCRIPTOR(ftruncate, TRUNCATE, (int descriptor, off_t size), (descriptor, size))
ON_DESCRIPTOR(ftruncate64, TRUNCATE, (int descriptor, off64_t size), (descriptor, size))
ON_DESCRIPTOR(flock, LOCK, (int descriptor, int operation), (descriptor, operation))

#define ON_PATH(name, kind, parameters, arguments)                                                                     \
    int name parameters {                                                                                              \
        NEXT(int, name, parameters)                                                                                    \
        return is_at_below(AT_FDCWD, path) && strikes(kind) == 1 ? -1 : next arguments;                                \
    }
ON_PATH(mkdir, MKDIR, (const char *path, mode_t mode), (path, mode))
ON_PATH(unlink, UNLINK, (const char *path), (path))
ON_PATH(rmdir, UNLINK, (const char *path), (path))
ON_PATH(rename, RENAME, (const char *path, const char *destination), (path, destination))

#define AT_PATH(name, kind, parameters, arguments)                                                                     \
    int name parameters {                                                                                              \
        NEXT(int, name, parameters)                                                                                    \
        return is_at_below(parent, path) && strikes(kind) == 1 ? -1 : next arguments;                                  \
    }
AT_PATH(mkdirat, MKDIR, (int parent, const char *path, mode_t mode), (parent, path, mode))
AT_PATH(unlinkat, UNLINK, (int parent, const char *path, int flags), (parent, path, flags))
AT_PATH(renameat, RENAME, (int parent, const char *path, int to, const char *destination),
        (parent, path, to, destination))
AT_PATH(renameat2, RENAME, (int parent, const char *path, int to, const char *destination, unsigned flags),
        (parent, path, to, destination, flags))

/* Memory. The interpreter's arenas, torch's large tensors and files that are mapped come from here. */

void *mmap(void *address, size_t size, int protection, int flags, int descriptor, off_t offset) {
    if (size >= smallest && strikes(MAP) == 1)
        return MAP_FAILED;
    return (void *)syscall(SYS_mmap, address, size, protection, flags, descriptor, offset);
}

void *mmap64(void *address, size_t size, int protection, int flags, int descriptor, off64_t offset) {
    if (size >= smallest && strikes(MAP) == 1)
        return MAP_FAILED;
    return (void *)syscall(SYS_mmap, address, size, protection, flags, descriptor, offset);
}

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

static int refuses(size_t size) {
    return size >= smallest && strikes(ALLOCATE) == 1;
}

void *malloc(size_t size) {
    return refuses(size) ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
    return refuses(count * size) ? NULL : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size) {
    return refuses(size) ? NULL : __libc_realloc(old, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    return refuses(size) ? NULL : __libc_memalign(alignment, size);
}

int posix_memalign(void **result, size_t alignment, size_t size) {
    if (refuses(size))
        return failure;
    *result = __libc_memalign(alignment, size);
    return *result ? 0 : ENOMEM;
}

/* The time of day, which an administrator or a time server may set back. */
int clock_gettime(clockid_t clock, struct timespec *result) {
    int code = (int)syscall(SYS_clock_gettime, clock, result);
    if (!code && clock == CLOCK_REALTIME && clock_shift != 0 &&
        __atomic_add_fetch(&clock_calls, 1, __ATOMIC_SEQ_CST) > clock_shift_after)
        result->tv_sec += (time_t)clock_shift;
    return code;
}
