/* Tells sequential requests from random ones: several streams may be open at a time. */
#ifndef DEVMODEL_STREAMS_H
#define DEVMODEL_STREAMS_H

#include <stdbool.h>
#include <stdint.h>

#define OPEN_STREAMS 16

struct streams {
    uint64_t ends[OPEN_STREAMS];
    unsigned oldest;
};

/* Note a request; returns whether it begins where one of the last streams ended. */
bool streams_continue(struct streams *s, uint64_t offset, uint32_t length);

#endif
