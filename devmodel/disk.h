/* A disk: one head above turning platters, a queue from which it takes the nearest, a write cache. */
#ifndef DEVMODEL_DISK_H
#define DEVMODEL_DISK_H

#include "heap.h"
#include "model.h"

struct disk;

struct disk *disk_new(const struct parameters *p, uint64_t size);
void disk_free(struct disk *d);
void disk_submit(struct disk *d, struct heap *answers, uint64_t now, enum operation op, uint64_t offset,
                 uint32_t length, void *owner);

/* When the head is free to begin what waits for it; NEVER when nothing does. */
uint64_t disk_next(const struct disk *d);

/* Let the head work until a time. */
void disk_advance(struct disk *d, struct heap *answers, uint64_t now);

#endif
