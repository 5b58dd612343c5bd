#include "load.h"

#include <stddef.h>

uint64_t load_next_answer(struct model *m) {
    void *owner;
    uint64_t time;
    while (!model_take(m, model_next(m), &owner, &time))
        if (model_next(m) == NEVER)
            return NEVER;
    return time;
}

double load_run(struct model *m, struct load load, uint64_t size, double warmup, double seconds) {
    static int owner;
    uint64_t now = 1, position = 0, state = 7;
    uint64_t begin = (uint64_t)(warmup * 1e9), end = begin + (uint64_t)(seconds * 1e9);
    long answers = 0;
    for (int sent = 1; now < end; sent++) {
        state = state * 6364136223846793005 + 1442695040888963407;
        uint64_t offset = load.sequential ? position : (state >> 33) % (size / load.length) * load.length;
        position = (position + load.length) % size;
        model_submit(m, now, load.op, offset, load.length, &owner);
        if (sent < load.depth)
            continue;
        now = load_next_answer(m);
        answers += now >= begin;
    }
    return (double)answers * 1e9 / (double)(now - begin);
}
