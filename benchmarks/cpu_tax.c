// A tax of CPU time on every command that a server receives, and nothing else:
//
//     LD_PRELOAD=cpu_tax.so TAXED=postgres TAX_FILE=tax postgres ...
//
// Only the program TAXED pays. The last line of TAX_FILE is the tax in
// microseconds; a file without a number, or none, taxes nobody. What arrives on
// a socket counts as a command, however it is read.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static long tax_ns;

__attribute__((constructor)) static void read_tax(void)
{
    const char *taxed = getenv("TAXED"), *path = getenv("TAX_FILE");
    if (!taxed || !path || strcmp(taxed, program_invocation_short_name) != 0)
        return;
    FILE *file = fopen(path, "r");
    if (!file)
        return;
    char line[64];
    while (fgets(line, sizeof line, file))
        tax_ns = atol(line) * 1000;
    fclose(file);
}

static long computed_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1000000000L + now.tv_nsec;
}

// The thread's own time: what it waits for a processor is not counted.
static ssize_t pay(ssize_t received)
{
    if (tax_ns && received > 0) {
        int error = errno;
        for (long end = computed_ns() + tax_ns; computed_ns() < end;)
            ;
        errno = error;
    }
    return received;
}

static int is_socket(int file)
{
    struct stat status;
    return fstat(file, &status) == 0 && S_ISSOCK(status.st_mode);
}

ssize_t recv(int file, void *buffer, size_t bytes, int flags)
{
    static ssize_t (*real)(int, void *, size_t, int);
    if (!real)
        real = dlsym(RTLD_NEXT, "recv");
    return pay(real(file, buffer, bytes, flags));
}

ssize_t recvmsg(int file, struct msghdr *message, int flags)
{
    static ssize_t (*real)(int, struct msghdr *, int);
    if (!real)
        real = dlsym(RTLD_NEXT, "recvmsg");
    return pay(real(file, message, flags));
}

ssize_t read(int file, void *buffer, size_t bytes)
{
    static ssize_t (*real)(int, void *, size_t);
    if (!real)
        real = dlsym(RTLD_NEXT, "read");
    ssize_t received = real(file, buffer, bytes);
    return tax_ns && is_socket(file) ? pay(received) : received;
}
