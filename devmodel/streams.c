#include "streams.h"

bool streams_continue(struct streams *s, uint64_t offset, uint32_t length) {
    for (unsigned i = 0; i < OPEN_STREAMS; i++)
        if (s->ends[i] == offset && offset) { /* 0 is an empty slot; offset 0 begins a stream */
            s->ends[i] = offset + length;
            return true;
        }
    s->ends[s->oldest] = offset + length;
    s->oldest = (s->oldest + 1) % OPEN_STREAMS;
    return false;
}
