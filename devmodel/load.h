/* A load in simulated time: keeps some requests under way on a device model, as fio does on a device. */
#ifndef DEVMODEL_LOAD_H
#define DEVMODEL_LOAD_H

#include "model.h"

struct load {
    enum operation op;
    uint32_t length;
    int depth;
    bool sequential;
};

/* Return when the next request is answered; NEVER when none is under way. */
uint64_t load_next_answer(struct model *m);

/* Run from now on for some seconds; returns requests per second, those of the first `warmup` seconds left out. */
double load_run(struct model *m, struct load load, uint64_t size, double warmup, double seconds);

#endif
