#include "noise.h"

#include <math.h>

/* SplitMix64 (Steele, Lea, Flood, OOPSLA 2014). */
static double uniform(struct noise *n) {
    uint64_t z = n->state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

double noise_on(struct noise *n, double latency) {
    if (n->sigma == 0)
        return latency;
    double normal = sqrt(-2 * log(1 - uniform(n))) * cos(2 * M_PI * uniform(n));
    return latency * exp(n->sigma * normal - n->sigma * n->sigma / 2);
}
