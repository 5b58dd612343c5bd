#include "heap.h"

#include "memory.h"

#include <stdbool.h>
#include <stdlib.h>

static bool before(const struct due *a, const struct due *b) {
    return a->time != b->time ? a->time < b->time : a->order < b->order;
}

void heap_push(struct heap *h, uint64_t time, void *owner) {
    h->items = grow(h->items, h->count, &h->room, sizeof *h->items);
    struct due item = {time, h->pushed++, owner};
    size_t i = h->count++;
    for (; i > 0 && before(&item, &h->items[(i - 1) / 2]); i = (i - 1) / 2)
        h->items[i] = h->items[(i - 1) / 2];
    h->items[i] = item;
}

struct due heap_pop(struct heap *h) {
    struct due top = h->items[0], last = h->items[--h->count];
    size_t i = 0;
    for (size_t child = 1; child < h->count; child = 2 * i + 1) {
        if (child + 1 < h->count && before(&h->items[child + 1], &h->items[child]))
            child++;
        if (!before(&h->items[child], &last))
            break;
        h->items[i] = h->items[child];
        i = child;
    }
    h->items[i] = last;
    return top;
}

void heap_free(struct heap *h) {
    free(h->items);
}
