/*
 * A disk that fails when a test says so.
 *
 * Preloaded before libc. Before each call below on a file whose path contains FAILING_DISK_UNDER the file named
 * by FAILING_DISK_FAULTS is read. Its lines say what fails:
 *
 *     <call> <end of the file's name, or *> <number of the error>
 *
 * where <call> is read, write, sync or change (a file or a name is made, replaced or removed, or
 * opened for writing). No such file, or an empty one: everything works. Whatever fails has no
 * effect, as on a file system that is read-only or has no room; a sync that fails promises nothing.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static const char *under;
static const char *faults;
static int (*real_open)(const char *, int, ...);
static ssize_t (*real_read)(int, void *, size_t);
static ssize_t (*real_pread)(int, void *, size_t, off_t);
static ssize_t (*real_write)(int, const void *, size_t);
static ssize_t (*real_pwrite)(int, const void *, size_t, off_t);
static int (*real_fsync)(int);
static int (*real_fdatasync)(int);
static int (*real_fallocate)(int, int, off_t, off_t);
static int (*real_unlink)(const char *);
static int (*real_rename)(const char *, const char *);
static int (*real_mkdir)(const char *, mode_t);
static FILE *(*real_fopen)(const char *, const char *);

__attribute__((constructor)) static void begin(void)
{
    real_open = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open");
    real_read = (ssize_t (*)(int, void *, size_t))dlsym(RTLD_NEXT, "read");
    real_pread = (ssize_t (*)(int, void *, size_t, off_t))dlsym(RTLD_NEXT, "pread64");
    real_write = (ssize_t (*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
    real_pwrite = (ssize_t (*)(int, const void *, size_t, off_t))dlsym(RTLD_NEXT, "pwrite64");
    real_fsync = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
    real_fdatasync = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    real_fallocate = (int (*)(int, int, off_t, off_t))dlsym(RTLD_NEXT, "fallocate64");
    real_unlink = (int (*)(const char *))dlsym(RTLD_NEXT, "unlink");
    real_rename = (int (*)(const char *, const char *))dlsym(RTLD_NEXT, "rename");
    real_mkdir = (int (*)(const char *, mode_t))dlsym(RTLD_NEXT, "mkdir");
    real_fopen = (FILE * (*)(const char *, const char *)) dlsym(RTLD_NEXT, "fopen64");
    under = getenv("FAILING_DISK_UNDER");
    faults = getenv("FAILING_DISK_FAULTS");
    if (under == NULL || faults == NULL) {
        fprintf(stderr, "failing_disk: FAILING_DISK_UNDER and FAILING_DISK_FAULTS must be set\n");
        _exit(70);
    }
}

static int ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), wanted = strlen(end);
    return wanted <= length && strcmp(text + length - wanted, end) == 0;
}

/* The error that `call` on `path` meets; 0: none. */
static int fault_at(const char *call, const char *path)
{
    char text[4096], known[16], name[128];
    int error = 0, kept = errno;
    /* A log of the process itself or a library is none of the test's. */
    if (strstr(path, under) == NULL)
        return 0;
    int fd = real_open(faults, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? 0 : real_read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    text[length < 0 ? 0 : length] = 0;
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
        int number;
        if (sscanf(line, "%15s %127s %d", known, name, &number) == 3 && strcmp(known, call) == 0 &&
            (strcmp(name, "*") == 0 || ends_with(path, name)))
            error = number;
    }
    errno = kept;
    return error;
}

static int fault(const char *call, int fd)
{
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0)
        return 0;
    path[length] = 0;
    return fault_at(call, path);
}

#define FAIL_IF(error)                                                                             \
    do {                                                                                           \
        int found = (error);                                                                       \
        if (found != 0) {                                                                          \
            errno = found;                                                                         \
            return -1;                                                                             \
        }                                                                                          \
    } while (0)

static int changes(int flags)
{
    return (flags & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)) != 0;
}

static mode_t mode_of(int flags, va_list list)
{
    return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(list, mode_t) : 0;
}

int open(const char *path, int flags, ...)
{
    va_list list;
    va_start(list, flags);
    mode_t mode = mode_of(flags, list);
    va_end(list);
    if (changes(flags))
        FAIL_IF(fault_at("change", path));
    return real_open(path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
    va_list list;
    va_start(list, flags);
    mode_t mode = mode_of(flags, list);
    va_end(list);
    if (changes(flags))
        FAIL_IF(fault_at("change", path));
    return real_open(path, flags | O_LARGEFILE, mode);
}

FILE *fopen(const char *path, const char *mode)
{
    int error = strpbrk(mode, "wa+") == NULL ? 0 : fault_at("change", path);
    if (error != 0) {
        errno = error;
        return NULL;
    }
    return real_fopen(path, mode);
}

FILE *fopen64(const char *path, const char *mode)
{
    return fopen(path, mode);
}

ssize_t pread(int fd, void *to, size_t count, off_t at)
{
    FAIL_IF(fault("read", fd));
    return real_pread(fd, to, count, at);
}

ssize_t pread64(int fd, void *to, size_t count, off_t at)
{
    FAIL_IF(fault("read", fd));
    return real_pread(fd, to, count, at);
}

ssize_t write(int fd, const void *from, size_t count)
{
    FAIL_IF(fault("write", fd));
    return real_write(fd, from, count);
}

ssize_t pwrite(int fd, const void *from, size_t count, off_t at)
{
    FAIL_IF(fault("write", fd));
    return real_pwrite(fd, from, count, at);
}

ssize_t pwrite64(int fd, const void *from, size_t count, off_t at)
{
    FAIL_IF(fault("write", fd));
    return real_pwrite(fd, from, count, at);
}

int fallocate(int fd, int mode, off_t at, off_t count)
{
    FAIL_IF(fault("write", fd));
    return real_fallocate(fd, mode, at, count);
}

int fallocate64(int fd, int mode, off_t at, off_t count)
{
    FAIL_IF(fault("write", fd));
    return real_fallocate(fd, mode, at, count);
}

int fsync(int fd)
{
    FAIL_IF(fault("sync", fd));
    return real_fsync(fd);
}

int fdatasync(int fd)
{
    FAIL_IF(fault("sync", fd));
    return real_fdatasync(fd);
}

int unlink(const char *path)
{
    FAIL_IF(fault_at("change", path));
    return real_unlink(path);
}

int rename(const char *from, const char *to)
{
    FAIL_IF(fault_at("change", to));
    return real_rename(from, to);
}

int mkdir(const char *path, mode_t mode)
{
    if (access(path, F_OK) == 0) {
        errno = EEXIST;
        return -1;
    }
    FAIL_IF(fault_at("change", path));
    return real_mkdir(path, mode);
}
