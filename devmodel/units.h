/*
 * Write units that were written in part since the last flush.
 *
 * Flash is written in units larger than a sector. A unit that has to be stored before all of it was written is filled
 * with what was there, which the device reads first. Units that were completed in the cache cost nothing extra.
 */
#ifndef DEVMODEL_UNITS_H
#define DEVMODEL_UNITS_H

#include <stddef.h>
#include <stdint.h>

struct units;

/* Units of `size` bytes. At most `limit` are remembered: a cache that holds more packs the others without a flush. */
struct units *units_new(uint64_t size, size_t limit);
void units_free(struct units *u);

/* Note a write. */
void units_write(struct units *u, uint64_t offset, uint32_t length);

/* Return how many units are written in part, and forget them. */
size_t units_flush(struct units *u);

#endif
