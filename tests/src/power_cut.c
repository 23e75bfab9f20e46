/*
 * Notes what a process has made durable, so that a test can cut the power.
 *
 * Preloaded before libc. After each successful fsync or fdatasync a line is appended to the
 * file named by POWER_CUT_JOURNAL:
 *
 *     F <inode> <size>                       this much of the file is on the disk
 *     D <inode> <name>=<inode> <name>=...    these entries of the folder are on the disk
 *
 * Both are read before the call, since only what was there then is sure to be covered by it.
 * What is unlinked or replaced by a rename is kept under POWER_CUT_KEPT by a hard link: until
 * its folder is synced, a power cut brings it back. The link also keeps its inode from being
 * given to another file. sync_file_range promises nothing and is not noted.
 *
 * POWER_CUT_FORGET is part of a file's name: syncs of such files are carried out and not
 * noted, as if the program had left them out. With it a test shows that it would find that.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int (*real_fsync)(int);
static int (*real_fdatasync)(int);
static int (*real_unlink)(const char *);
static int (*real_unlinkat)(int, const char *, int);
static int (*real_rename)(const char *, const char *);
static int (*real_renameat)(int, const char *, int, const char *);

static int journal = -1;
static const char *kept;
static const char *forget;

__attribute__((constructor)) static void begin(void)
{
    real_fsync = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
    real_fdatasync = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    real_unlink = (int (*)(const char *))dlsym(RTLD_NEXT, "unlink");
    real_unlinkat = (int (*)(int, const char *, int))dlsym(RTLD_NEXT, "unlinkat");
    real_rename = (int (*)(const char *, const char *))dlsym(RTLD_NEXT, "rename");
    real_renameat = (int (*)(int, const char *, int, const char *))dlsym(RTLD_NEXT, "renameat");
    kept = getenv("POWER_CUT_KEPT");
    forget = getenv("POWER_CUT_FORGET");
    const char *path = getenv("POWER_CUT_JOURNAL");
    if (path != NULL)
        journal = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (path == NULL || kept == NULL || journal < 0) {
        fprintf(stderr, "power_cut: POWER_CUT_JOURNAL and POWER_CUT_KEPT must be usable\n");
        _exit(70);
    }
}

/* A journal with a line missing would make the test pass or fail for nothing. */
static void give_up(const char *why)
{
    fprintf(stderr, "power_cut: %s\n", why);
    _exit(70);
}

/* One write for each line, so that lines of threads do not mix. */
static void append(const char *line, size_t length)
{
    if (write(journal, line, length) != (ssize_t)length)
        give_up("the journal cannot be written");
}

static int forgotten(int fd)
{
    char link[64], path[PATH_MAX];
    if (forget == NULL)
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0)
        return 0;
    path[length] = 0;
    const char *name = strrchr(path, '/');
    return strstr(name == NULL ? path : name, forget) != NULL;
}

/* The entries of a folder, as a line; to be freed. */
static char *entries(int fd, ino_t inode, size_t *length)
{
    char *line = NULL, path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    FILE *out = open_memstream(&line, length);
    DIR *folder = opendir(path);
    if (out == NULL || folder == NULL)
        give_up("a folder cannot be read");
    fprintf(out, "D %llu", (unsigned long long)inode);
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            fprintf(out, " %s=%llu", entry->d_name, (unsigned long long)entry->d_ino);
    fprintf(out, "\n");
    closedir(folder);
    if (fclose(out) != 0)
        give_up("no memory");
    return line;
}

static int noted(int fd, int (*sync)(int))
{
    struct stat file;
    if (fstat(fd, &file) != 0 || forgotten(fd))
        return sync(fd);
    char *line = NULL;
    size_t length = 0;
    if (S_ISDIR(file.st_mode)) {
        line = entries(fd, file.st_ino, &length);
    } else {
        int count = asprintf(&line, "F %llu %llu\n", (unsigned long long)file.st_ino,
                             (unsigned long long)file.st_size);
        if (count < 0)
            give_up("no memory");
        length = (size_t)count;
    }
    int result = sync(fd), error = errno;
    if (result == 0)
        append(line, length);
    free(line);
    errno = error;
    return result;
}

/* Keep what `path` names from going away. */
static void keep(int folder, const char *path)
{
    struct stat file;
    char target[PATH_MAX];
    int error = errno;
    if (fstatat(folder, path, &file, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(file.st_mode)) {
        snprintf(target, sizeof target, "%s/%llu", kept, (unsigned long long)file.st_ino);
        /* It may be there already; files of other file systems are none of the test's. */
        if (linkat(folder, path, AT_FDCWD, target, 0) != 0 && errno != EEXIST && errno != EXDEV)
            give_up("a file cannot be kept");
    }
    errno = error;
}

int fsync(int fd)
{
    return noted(fd, real_fsync);
}

int fdatasync(int fd)
{
    return noted(fd, real_fdatasync);
}

int unlink(const char *path)
{
    keep(AT_FDCWD, path);
    return real_unlink(path);
}

int unlinkat(int folder, const char *path, int flags)
{
    if ((flags & AT_REMOVEDIR) == 0)
        keep(folder, path);
    return real_unlinkat(folder, path, flags);
}

int rename(const char *from, const char *to)
{
    keep(AT_FDCWD, to);
    return real_rename(from, to);
}

int renameat(int from_folder, const char *from, int to_folder, const char *to)
{
    keep(to_folder, to);
    return real_renameat(from_folder, from, to_folder, to);
}
