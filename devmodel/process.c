#define _GNU_SOURCE
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

void fail(const char *what, const char *why) {
    fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, why);
    exit(2);
}

void end_with_parent(void) {
    pid_t parent = getppid();
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        exit(1);
}

/* The second needs a privilege; without it the risk is that of any FUSE server. */
void serve_promptly(void) {
    prctl(PR_SET_TIMERSLACK, 1);
    prctl(PR_SET_IO_FLUSHER, 1);
}

/*
 * A processor that sleeps takes a time to wake that changes from minute to minute, several times what all else on the
 * way costs. As long as this descriptor is open, idle processors poll instead.
 */
void keep_processors_awake(void) {
    int32_t longest_us = 0;
    int wish = open("/dev/cpu_dma_latency", O_WRONLY | O_CLOEXEC);
    if (wish >= 0 && write(wish, &longest_us, sizeof longest_us) != sizeof longest_us)
        close(wish);
}
