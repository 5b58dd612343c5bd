#include "way.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PAGE 4096
/* Long enough for tens of requests at the rates that matter, short enough to follow a load that changes. */
#define MEMORY_NS 4e6
/* Answers over which latency is averaged: long enough to know the mean of a mixed load. */
#define ANSWERS 64

/* Read a number that ends with `end`; returns what follows it, NULL when it is none. */
static const char *read_number(const char *text, char end, double *number) {
    char *rest;
    errno = 0;
    *number = strtod(text, &rest);
    if (rest == text || errno || !isfinite(*number) || *number < 0 || (*rest && *rest != end))
        return NULL;
    return *rest ? rest + 1 : rest;
}

bool way_read_operations(double *values, const char *numbers) {
    for (int op = 0; op < OP_COUNT; op++) {
        const char *rest = read_number(numbers, ',', &values[op]);
        if (!rest || (*rest == 0) != (op == OP_COUNT - 1))
            return false;
        numbers = rest;
    }
    return true;
}

static const char *set_operations(double *values, const char *numbers) {
    return way_read_operations(values, numbers) ? NULL : "expected nanoseconds of reads, writes and flushes";
}

static const char *set_waits(struct waits *w, const char *numbers) {
    for (w->loads = 0; *numbers; w->loads++) {
        if (w->loads == MOST_LOADS)
            return "expected fewer loads";
        numbers = read_number(numbers, '=', &w->others[w->loads]);
        if (numbers)
            numbers = read_number(numbers, ',', &w->waited[w->loads]);
        if (!numbers || w->others[w->loads] <= (w->loads ? w->others[w->loads - 1] : 0))
            return "expected OTHERS=WAITED,... with ascending numbers of others";
    }
    return NULL;
}

const char *way_set(struct way *w, const char *name, const char *numbers) {
    if (!strcmp(name, "queue"))
        return set_waits(&w->queue, numbers);
    if (!strcmp(name, "page-queue"))
        return set_waits(&w->page_queue, numbers);
    if (!strcmp(name, "early"))
        return set_operations(w->alone, numbers);
    if (!strcmp(name, "page"))
        return set_operations(w->page, numbers);
    if (!strcmp(name, "work"))
        return set_operations(w->work, numbers);
    return set_operations(w->page_work, numbers);
}

/* Straight lines between what was measured, from nothing for a request alone on; beyond the last nothing is known. */
static double wait_for(const struct waits *w, double others) {
    double left = 0, low = 0;
    for (int i = 0; i < w->loads; i++) {
        if (others <= w->others[i])
            return low + (w->waited[i] - low) * (others - left) / (w->others[i] - left);
        left = w->others[i];
        low = w->waited[i];
    }
    return low;
}

/* The sum of recent requests holds the last one in full, which is half too much. */
static double others_under_way(const struct way *w) {
    double under_way = (w->recent_requests - 0.5) / MEMORY_NS * w->latency;
    return under_way > 1 ? under_way - 1 : 0;
}

struct cost way_cost(struct way *w, uint64_t now, enum operation op, uint32_t length) {
    double pages = length > PAGE ? (double)((length - 1) / PAGE) : 0;
    double fading = exp(-(double)(now - w->last) / MEMORY_NS);
    w->last = now;
    w->recent_work = w->recent_work * fading + w->work[op];
    w->recent_page_work = w->recent_page_work * fading + pages * w->page_work[op];
    w->recent_requests = w->recent_requests * fading + 1;
    double others = others_under_way(w);
    return (struct cost){
        .first = w->alone[op] + wait_for(&w->queue, others) * w->recent_work / w->recent_requests,
        .further = pages * w->page[op] + wait_for(&w->page_queue, others) * w->recent_page_work / w->recent_requests,
    };
}

void way_answered(struct way *w, uint64_t latency) {
    w->latency += ((double)latency - w->latency) / ANSWERS;
}
