/*
 * What a device model does with a simple load, in simulated time: nothing is read or written.
 *
 *   simulate SIZE read|write LENGTH DEPTH random|sequential WARMUP SECONDS [KEY=VALUE...]
 *
 * prints requests per second. Sizes are bytes.
 */
#include "load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int count, char **arguments) {
    if (count < 8) {
        fprintf(stderr,
                "usage: simulate SIZE read|write LENGTH DEPTH random|sequential WARMUP SECONDS [KEY=VALUE...]\n");
        return 2;
    }
    struct parameters p;
    parameters_init(&p);
    const char *wrong = NULL;
    for (int i = 8; i < count && !wrong; i++)
        wrong = parameters_set(&p, arguments[i]);
    if (wrong || (wrong = parameters_check(&p))) {
        fprintf(stderr, "simulate: %s\n", wrong);
        return 2;
    }
    uint64_t size = strtoull(arguments[1], NULL, 10);
    struct load load = {.op = strcmp(arguments[2], "read") ? OP_WRITE : OP_READ,
                        .length = (uint32_t)strtoul(arguments[3], NULL, 10),
                        .depth = atoi(arguments[4]),
                        .sequential = !strcmp(arguments[5], "sequential")};
    if (!load.length || load.depth < 1 || size < load.length) {
        fprintf(stderr, "simulate: expected LENGTH and DEPTH of at least 1, and a SIZE that holds them\n");
        return 2;
    }
    struct model *m = model_new(&p, size);
    printf("%.1f\n", load_run(m, load, size, atof(arguments[6]), atof(arguments[7])));
    model_free(m);
    return 0;
}
