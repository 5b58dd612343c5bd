#include "memory.h"

#include <stdio.h>
#include <stdlib.h>

static void *require(void *memory) {
    if (!memory) {
        fprintf(stderr, "devmodel: out of memory\n");
        exit(1);
    }
    return memory;
}

void *allocate(size_t count, size_t size) {
    return require(calloc(count ? count : 1, size));
}

void *grow(void *items, size_t count, size_t *room, size_t size) {
    if (count < *room)
        return items;
    size_t larger = *room ? 2 * *room : 64;
    void *moved = require(reallocarray(items, larger, size));
    *room = larger;
    return moved;
}
