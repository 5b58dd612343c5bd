// How many requests had which size.
#pragma once

#include "device.bpf.h"

#define EXACT_SIZES 2048  // multiples of 512 up to 1 MiB have a counter each, other sizes go to a hash

struct odd_size_t { u32 set, op, bytes; };

BPF_HASH(odd_sizes, struct odd_size_t, u64, 4096);

static __always_inline void count_size(struct config_t *c, u64 *sizes, u64 *lost, u32 op, u32 bytes)
{
    u64 index = bytes / 512 - 1;
    asm volatile("" : "+r"(index));  // keeps the compiler from moving the bound away from the verifier's eyes
    if (bytes % 512 == 0 && index < EXACT_SIZES) {
        sizes[index] += 1;
        return;
    }
    u64 one = 1;
    struct odd_size_t key = {.set = c->epoch & 1, .op = op, .bytes = bytes};
    u64 *count = odd_sizes.lookup(&key);
    if (count)
        __sync_fetch_and_add(count, 1);
    else if (odd_sizes.update(&key, &one))
        *lost += 1;
}
