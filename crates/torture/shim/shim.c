/* Faults of the disk and of the wall clock, for a program that is started with this before the C library (LD_PRELOAD).
 *
 * Which calls fail is read from the file that FAULT_PLAN names, at every call, so that a test can change it while the program
 * runs. Only calls for the files of a throng database are counted and failed; they are told by their names. The program must make
 * these calls through the C library: a system call of its own is not seen here.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

/* Other names for the same functions are defined below, so no header may map one to the other. */
#if defined(__USE_FILE_OFFSET64)
#error "compile without _FILE_OFFSET_BITS=64"
#endif

/* The words of the plan, as crates/torture/src/faults.rs writes them. */
struct plan {
    _Atomic int64_t calls; /* which calls: a set of CALL_ */
    _Atomic int64_t files; /* to which files: a set of FILE_ */
    _Atomic int64_t good;  /* so many go well first */
    _Atomic int64_t bad;   /* then so many do not */
    _Atomic int64_t error; /* errno; 0: only half of what is to be written is written */
    _Atomic int64_t met;   /* calls that did not go well so far */
    _Atomic int64_t clock; /* seconds by which the wall clock is wrong */
};

enum { CALL_SYNC = 1, CALL_WRITE = 2, CALL_OPEN = 4 };
enum { FILE_DATABASE = 1, FILE_LOG = 2, FILE_MARK = 4, FILE_SHARED = 8 };

static struct plan *plan;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("FAULT_PLAN");
    int fd = path ? (int)open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0) {
        fprintf(stderr, "the shim has no plan\n");
        abort();
    }
    void *mapped = mmap(NULL, sizeof *plan, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mapped == MAP_FAILED) abort();
    close(fd);
    plan = mapped;
}

static int64_t file_of_path(const char *path) {
    static const struct { const char *name; int64_t file; } files[] = {
        {"/throng.db", FILE_DATABASE},     {"/throng.db.new", FILE_DATABASE}, {"/throng.db.new-journal", FILE_DATABASE},
        {"/throng.db-wal", FILE_LOG},      {"/throng.db-mark", FILE_MARK},    {"/throng.db-shm", FILE_SHARED},
    };
    const char *name = strrchr(path, '/');
    for (size_t i = 0; name && i < sizeof files / sizeof *files; i++)
        if (strcmp(name, files[i].name) == 0) return files[i].file;
    return 0;
}

/* Looked up each time: threads have descriptor tables of their own, in which a number means different files. */
static int64_t file_of_descriptor(int fd) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/thread-self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return file_of_path(path);
}

/* Whether a call goes well: -1 if so, or what `error` of the plan says. */
static int64_t fault(int64_t file) {
    if (!(plan->files & file)) return -1;
    if (atomic_fetch_sub(&plan->good, 1) > 0) return -1;
    if (atomic_fetch_sub(&plan->bad, 1) <= 0) return -1;
    atomic_fetch_add(&plan->met, 1);
    return plan->error;
}

static int is_planned(int64_t call) { return plan && (plan->calls & call); }

/* The function of the C library that is named like the one around it. */
#define REAL(type, name, ...) \
    static type (*real)(__VA_ARGS__); \
    if (!real) real = (type(*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

#define SYNC(name) \
    int name(int fd) { \
        REAL(int, #name, int); \
        int64_t error = is_planned(CALL_SYNC) ? fault(file_of_descriptor(fd)) : -1; \
        if (error <= 0) return real(fd); \
        errno = (int)error; \
        return -1; \
    }
SYNC(fsync)
SYNC(fdatasync)

/* How much of a write is done: all of it, half of it, or nothing with an error. */
static ssize_t written_of(int fd, size_t length) {
    int64_t error = is_planned(CALL_WRITE) ? fault(file_of_descriptor(fd)) : -1;
    if (error == 0) return length > 1 ? (ssize_t)(length / 2) : (ssize_t)length;
    if (error < 0) return (ssize_t)length;
    errno = (int)error;
    return -1;
}

ssize_t write(int fd, const void *bytes, size_t length) {
    REAL(ssize_t, "write", int, const void *, size_t);
    ssize_t part = written_of(fd, length);
    return part < 0 ? -1 : real(fd, bytes, (size_t)part);
}

#define PWRITE(name, offset_type) \
    ssize_t name(int fd, const void *bytes, size_t length, offset_type offset) { \
        REAL(ssize_t, #name, int, const void *, size_t, offset_type); \
        ssize_t part = written_of(fd, length); \
        return part < 0 ? -1 : real(fd, bytes, (size_t)part, offset); \
    }
PWRITE(pwrite, off_t)
PWRITE(pwrite64, off64_t)

/* Calls that make a file longer or shorter are done whole or not at all. */
#define RESIZE(name, offset_type) \
    int name(int fd, offset_type size) { \
        REAL(int, #name, int, offset_type); \
        return written_of(fd, 1) < 0 ? -1 : real(fd, size); \
    }
RESIZE(ftruncate, off_t)
RESIZE(ftruncate64, off64_t)

#define ALLOCATE(name, offset_type) \
    int name(int fd, int mode, offset_type offset, offset_type length) { \
        REAL(int, #name, int, int, offset_type, offset_type); \
        return written_of(fd, 1) < 0 ? -1 : real(fd, mode, offset, length); \
    }
ALLOCATE(fallocate, off_t)
ALLOCATE(fallocate64, off64_t)

/* These give the error back instead of leaving it in errno. */
#define ALLOCATE_POSIX(name, offset_type) \
    int name(int fd, offset_type offset, offset_type length) { \
        REAL(int, #name, int, offset_type, offset_type); \
        return written_of(fd, 1) < 0 ? errno : real(fd, offset, length); \
    }
ALLOCATE_POSIX(posix_fallocate, off_t)
ALLOCATE_POSIX(posix_fallocate64, off64_t)

#define OPEN(name) \
    int name(const char *path, int flags, ...) { \
        REAL(int, #name, const char *, int, ...); \
        va_list arguments; \
        va_start(arguments, flags); \
        int mode = (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(arguments, int) : 0; \
        va_end(arguments); \
        int64_t error = is_planned(CALL_OPEN) ? fault(file_of_path(path)) : -1; \
        if (error <= 0) return real(path, flags, mode); \
        errno = (int)error; \
        return -1; \
    }
OPEN(open)
OPEN(open64)

int clock_gettime(clockid_t clock, struct timespec *at) {
    REAL(int, "clock_gettime", clockid_t, struct timespec *);
    int result = real(clock, at);
    if (result == 0 && plan && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) at->tv_sec += plan->clock;
    return result;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone) {
    REAL(int, "gettimeofday", struct timeval *restrict, void *restrict);
    int result = real(at, zone);
    if (result == 0 && plan) at->tv_sec += plan->clock;
    return result;
}

time_t time(time_t *at) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at) *at = now.tv_sec;
    return now.tv_sec;
}
