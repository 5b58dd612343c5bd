// Histograms of time: four buckets per power of two nanoseconds, the last one from 8.8e12 ns on; buckets.py has edges.
#pragma once

#include "facts.bpf.h"

#define BUCKETS 176

// Without branches, which the verifier would follow one by one: `bits`, if something is left above them, else 0.
#define HALVE(bits) \
    step = (((1ULL << (bits)) - 1 - rest) >> 63) * (bits); \
    rest >>= step; \
    power += step;

static __always_inline u64 get_bucket(u64 ns)
{
    u64 power = 0, rest = ns, step;
    HALVE(32)
    HALVE(16)
    HALVE(8)
    HALVE(4)
    HALVE(2)
    power += rest >> 1;
    // Below 4 ns everything is in the first.
    u64 bucket = power < 2 ? 0 : power * 4 + ((ns >> (power - 2)) & 3);
    asm volatile("" : "+r"(bucket));  // keeps the compiler from moving the bound away from the verifier's eyes
    return bucket < BUCKETS ? bucket : BUCKETS - 1;
}
