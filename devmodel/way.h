/*
 * What the way between the block layer and this program costs a request: an answer leaves earlier by as much.
 *
 * A request that comes alone pays for the way through the kernel, and for each page. Under load it also waits for
 * those before it, as the way takes one at a time: so the cost grows with the share of time in which the way is busy.
 * That share is known here from what came in the last milliseconds; what it costs was measured beforehand.
 */
#ifndef DEVMODEL_WAY_H
#define DEVMODEL_WAY_H

#include "model.h"

#define OP_COUNT 3
#define MOST_LOADS 16

struct way {
    /* ns that a request of one page costs alone, by operation, and ns more for each further page */
    double alone[OP_COUNT], page[OP_COUNT];
    /* ns for which a request of one page keeps the way busy, and ns more for each further page */
    double work[OP_COUNT], page_work[OP_COUNT];
    /* at these shares of busy time, ascending, a request waits for so many others */
    double busy[MOST_LOADS], others[MOST_LOADS];
    int loads;
    /* work and number of the requests of the last milliseconds, the older the less */
    double recent_work, recent_requests;
    uint64_t last;
};

/* Set "early", "page", "work", "page-work" (ns of reads, writes, flushes) or "queue" (BUSY=OTHERS, ascending) from
 * numbers with commas between them; returns NULL, or what is wrong with them. */
const char *way_set(struct way *w, const char *name, const char *numbers);

/* A request came: return by how many ns its answer has to leave early. Times never go back. */
uint64_t way_cost(struct way *w, uint64_t now, enum operation op, uint32_t length);

#endif
