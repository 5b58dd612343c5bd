/* Answers in the order in which they are due; equal times keep the order in which they came. Grows without a limit. */
#ifndef DEVMODEL_HEAP_H
#define DEVMODEL_HEAP_H

#include <stddef.h>
#include <stdint.h>

struct due {
    uint64_t time, order;
    void *owner;
};

struct heap {
    struct due *items;
    size_t count, room;
    uint64_t pushed;
};

void heap_push(struct heap *h, uint64_t time, void *owner);
struct due heap_pop(struct heap *h); /* of a heap that is not empty */
void heap_free(struct heap *h);

#endif
