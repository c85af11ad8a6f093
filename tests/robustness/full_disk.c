/* A disk that is full: from the FROM-th write on, every write to a file under FULL_DISK_UNDER fails
   with ENOSPC. FROM and the number of writes so far are two integers in the file FULL_DISK_STATE,
   shared with whoever looks: a FROM of 0 is a disk with room. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

static struct { int64_t from, writes; } *state;

__attribute__((constructor)) static void start(void)
{
    int file = open(getenv("FULL_DISK_STATE"), O_RDWR);
    state = mmap(NULL, sizeof *state, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
}

static int full(int file)
{
    char link[64], path[4096];
    const char *under = getenv("FULL_DISK_UNDER");
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (!under || length < 0 || strncmp(path, under, strlen(under)))
        return 0;
    int64_t number = __sync_add_and_fetch(&state->writes, 1);
    if (!state->from || number < state->from)
        return 0;
    errno = ENOSPC;
    return 1;
}

#define FAILING(name, parameters, arguments)                                      \
    ssize_t name parameters                                                       \
    {                                                                             \
        static ssize_t (*real) parameters;                                        \
        if (!real)                                                                \
            real = (ssize_t (*) parameters)dlsym(RTLD_NEXT, #name);               \
        return full(file) ? -1 : real arguments;                                  \
    }

FAILING(write, (int file, const void *data, size_t n), (file, data, n))
FAILING(pwrite, (int file, const void *data, size_t n, off_t at), (file, data, n, at))
FAILING(pwrite64, (int file, const void *data, size_t n, off64_t at), (file, data, n, at))
FAILING(writev, (int file, const struct iovec *data, int n), (file, data, n))
