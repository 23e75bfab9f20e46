/* A clock that a test sets: CLOCK_REALTIME is off by the seconds in a file of 8 bytes, which the
 * test writes while the process runs. Preloaded; Linux only. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *offset;
static int (*real)(clockid_t, struct timespec *);

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("TEST_CLOCK");
    int file = path ? open(path, O_RDONLY) : -1;
    real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    if (file < 0)
        return;
    void *at = mmap(NULL, sizeof *offset, PROT_READ, MAP_SHARED, file, 0);
    if (at != MAP_FAILED)
        offset = at;
    close(file);
}

int clock_gettime(clockid_t id, struct timespec *time)
{
    if (!real)
        real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(id, time);
    if (result == 0 && id == CLOCK_REALTIME && offset)
        time->tv_sec += *offset;
    return result;
}
