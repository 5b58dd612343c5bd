/* A flash device: channels, a bus, a write cache that is stored in units, flushes. */
#ifndef DEVMODEL_FLASH_H
#define DEVMODEL_FLASH_H

#include "model.h"

struct flash;

struct flash *flash_new(const struct parameters *p);
void flash_free(struct flash *f);

/* Return when the request is answered. Nothing that comes later changes that. */
uint64_t flash_submit(struct flash *f, uint64_t now, enum operation op, uint64_t offset, uint32_t length);

#endif
