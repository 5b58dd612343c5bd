/* Jitter with a seed: the same seed gives the same device again. */
#ifndef DEVMODEL_NOISE_H
#define DEVMODEL_NOISE_H

#include <stdint.h>

struct noise {
    uint64_t state;
    double sigma;
};

/* Return a latency, multiplied by a log-normal factor with mean 1. */
double noise_on(struct noise *n, double latency);

#endif
