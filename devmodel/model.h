/*
 * A storage device in simulated time: told when requests come, it says when they are answered.
 *
 * It knows no clock, no file and no kernel, so that tests can ask it anything. Times are nanoseconds of a clock that
 * never goes back; requests are submitted in the order of their times.
 */
#ifndef DEVMODEL_MODEL_H
#define DEVMODEL_MODEL_H

#include "parameters.h"

#include <stdbool.h>
#include <stdint.h>

#define NEVER UINT64_MAX

enum operation { OP_READ, OP_WRITE, OP_FLUSH };

struct model;

/* `size` is that of the device in bytes. */
struct model *model_new(const struct parameters *p, uint64_t size);
void model_free(struct model *m);

/* A request arrives; `owner` is handed back when it is answered. */
void model_submit(struct model *m, uint64_t now, enum operation op, uint64_t offset, uint32_t length, void *owner);

/* When model_take has something to do next; NEVER while nothing is under way. */
uint64_t model_next(const struct model *m);

/* Return one request that is answered by `now`, earliest first, with its time; false when there is none. */
bool model_take(struct model *m, uint64_t now, void **owner, uint64_t *time);

#endif
