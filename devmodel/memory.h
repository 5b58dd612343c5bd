/* Memory that grows: the program has no fixed limits, and ends when the machine has no memory left. */
#ifndef DEVMODEL_MEMORY_H
#define DEVMODEL_MEMORY_H

#include <stddef.h>

void *allocate(size_t count, size_t size); /* zeroed */

/* Return the array, moved if need be, so that item number `count` fits; `room` is how many fit. */
void *grow(void *items, size_t count, size_t *room, size_t size);

#endif
