/*
 * What the way between the block layer and this program costs a request: an answer leaves earlier by as much.
 *
 * A request that comes alone pays for the way through the kernel, and for each page. With others under way it also
 * waits for some of them, as the way takes one at a time: the more there are, and the longer each keeps it busy. What
 * came in the last milliseconds tells how many are under way, by Little's law; how long one waits then was measured
 * beforehand: for what the others cost with one page, and for what further pages cost, which is copied at a stretch.
 */
#ifndef DEVMODEL_WAY_H
#define DEVMODEL_WAY_H

#include "model.h"

#define OP_COUNT 3
#define MOST_LOADS 16

/* With so many others under way, ascending, a request waits for the work of so many. */
struct waits {
    double others[MOST_LOADS], waited[MOST_LOADS];
    int loads;
};

struct way {
    /* ns that a request of one page costs alone, by operation, and ns more for each further page */
    double alone[OP_COUNT], page[OP_COUNT];
    /* ns for which a request of one page keeps the way busy, and ns more for each further page */
    double work[OP_COUNT], page_work[OP_COUNT];
    struct waits queue, page_queue; /* for their first pages, and for their further ones */
    /* work of first and of further pages and number of the requests of the last milliseconds, the older the less */
    double recent_work, recent_page_work, recent_requests;
    uint64_t last;
    double latency; /* mean ns that the model took for the last requests, the way included */
};

/* Read numbers for reads, writes and flushes, with commas between them; returns false when they are none. */
bool way_read_operations(double *values, const char *numbers);

/* Set "early", "page", "work", "page-work" (ns of reads, writes, flushes), "queue" or "page-queue" (OTHERS=WAITED,
 * ascending) from numbers with commas between them; returns NULL, or what is wrong with them. */
const char *way_set(struct way *w, const char *name, const char *numbers);

/* By how many ns the answer to a request has to leave early: for its first page, and for further ones. */
struct cost {
    double first, further;
};

/* A request came: return what it costs. Times never go back. */
struct cost way_cost(struct way *w, uint64_t now, enum operation op, uint32_t length);

/* A request was answered that was to take so many ns, all in all. */
void way_answered(struct way *w, uint64_t latency);

#endif
