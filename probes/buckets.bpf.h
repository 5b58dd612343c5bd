// Histograms of time: four buckets per power of two nanoseconds, the last one from 8.8e12 ns on; buckets.py has edges.
#pragma once

#include "facts.bpf.h"

#define BUCKETS 176

static __always_inline u64 get_bucket(u64 ns)
{
    u64 power = 0, rest = ns;
    if (rest >> 32) {
        power += 32;
        rest >>= 32;
    }
    if (rest >> 16) {
        power += 16;
        rest >>= 16;
    }
    if (rest >> 8) {
        power += 8;
        rest >>= 8;
    }
    if (rest >> 4) {
        power += 4;
        rest >>= 4;
    }
    if (rest >> 2) {
        power += 2;
        rest >>= 2;
    }
    power += rest >> 1;
    // Below 4 ns everything is in the first.
    u64 bucket = power < 2 ? 0 : power * 4 + ((ns >> (power - 2)) & 3);
    asm volatile("" : "+r"(bucket));  // keeps the compiler from moving the bound away from the verifier's eyes
    return bucket < BUCKETS ? bucket : BUCKETS - 1;
}
