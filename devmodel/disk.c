#include "disk.h"

#include "memory.h"

#include <math.h>
#include <stdlib.h>

/* The mean of sqrt(|x - y|) for two random positions x, y between 0 and 1: relates the mean seek to the longest one. */
#define MEAN_ROOT_DISTANCE (8.0 / 15)
/* A request that the host has waited for so long goes first, however far away it is. */
#define PATIENCE_NS 1e9

struct task {
    struct task *next;
    enum operation op;
    uint64_t offset, order;
    uint32_t length;
    double arrival;
    void *owner; /* NULL for a write that was answered from the cache */
};

/* In the order of arrival. */
struct queue {
    struct task *first, **last;
};

struct disk {
    struct parameters p;
    double size, track;           /* bytes */
    struct queue host, cache;     /* the host waits for these; it does not wait for those */
    struct queue barred, flushes; /* writes without room in the cache; flushes without all before them stored */
    double cached;                /* bytes in the cache */
    double head_free, bus_free;   /* when */
    bool reads_on;                /* the last transfer was a read: what follows goes into a buffer */
    uint64_t head;                /* where the last transfer ended */
    uint64_t orders;
};

static double later(double a, double b) {
    return a > b ? a : b;
}

static void append(struct queue *q, struct task *t) {
    t->next = NULL;
    if (!q->first)
        q->last = &q->first;
    *q->last = t;
    q->last = &t->next;
}

static struct task *remove_at(struct queue *q, struct task **link) {
    struct task *t = *link;
    *link = t->next;
    if (!t->next)
        q->last = link;
    return t;
}

struct disk *disk_new(const struct parameters *p, uint64_t size) {
    struct disk *d = allocate(1, sizeof *d);
    d->p = *p;
    d->size = (double)size;
    d->track = p->track > 0 ? p->track : p->media * p->rotation / 1e9;
    return d;
}

static void free_queue(struct queue *q) {
    while (q->first)
        free(remove_at(q, &q->first));
}

void disk_free(struct disk *d) {
    free_queue(&d->host);
    free_queue(&d->cache);
    free_queue(&d->barred);
    free_queue(&d->flushes);
    free(d);
}

/* Whether a read lies within a track of the last one: a disk that reads on has it, or will have it in passing. */
static bool is_read_ahead(const struct disk *d, const struct task *t) {
    return t->op == OP_READ && d->reads_on && fabs((double)t->offset - (double)d->head) <= d->track;
}

/* Time to bring the head to a request's first byte. */
static double position(const struct disk *d, double from, const struct task *t) {
    if (is_read_ahead(d, t))
        return t->offset > d->head ? (double)(t->offset - d->head) * 1e9 / d->p.media : 0;
    if (t->offset == d->head && from <= d->head_free)
        return 0;
    double distance = fabs((double)t->offset - (double)d->head), seek = 0;
    if (distance >= d->track)
        seek = d->p.track_seek + (d->p.seek - d->p.track_seek) / MEAN_ROOT_DISTANCE * sqrt(distance / d->size);
    double there = fmod((double)t->offset, d->track) / d->track;
    double turned = fmod(from + seek, d->p.rotation) / d->p.rotation;
    double wait = there - turned;
    return seek + (wait < 0 ? wait + 1 : wait) * d->p.rotation;
}

/* Find the nearest of the first requests that have come by a time; a longer way than `best` does not count. */
static struct task **nearest(const struct disk *d, struct queue *q, double now, double *best) {
    struct task **found = NULL;
    struct task **link = &q->first;
    for (double looked = 0; *link && (*link)->arrival <= now && looked < d->p.queue; looked++) {
        double way = position(d, now, *link);
        if ((*link)->owner && now - (*link)->arrival > PATIENCE_NS) {
            *best = way;
            return link;
        }
        if (way < *best) {
            *best = way;
            found = link;
        }
        link = &(*link)->next;
    }
    return found;
}

static void admit(struct disk *d, struct heap *answers, struct task *t, double now) {
    double time = d->p.bus > 0 ? t->length * 1e9 / d->p.bus : 0;
    d->bus_free = later(d->bus_free, now) + time;
    heap_push(answers, (uint64_t)later(now + d->p.write + time, d->bus_free), t->owner);
    t->owner = NULL;
    t->order = d->orders++;
    t->arrival = now;
    d->cached += t->length;
    append(&d->cache, t);
}

static bool has_room(const struct disk *d, uint32_t length) {
    return d->cached == 0 || d->cached + length <= d->p.cache;
}

/* Whether everything that was written before a flush is stored, or on its way under the head; oldest come first. */
static bool is_stored(const struct disk *d, uint64_t order) {
    return !d->cache.first || d->cache.first->order >= order;
}

static void finish_flushes(struct disk *d, struct heap *answers, double now) {
    while (d->flushes.first && is_stored(d, d->flushes.first->order)) {
        struct task *t = remove_at(&d->flushes, &d->flushes.first);
        heap_push(answers, (uint64_t)(later(now, t->arrival) + d->p.flush), t->owner);
        free(t);
    }
}

/* Let the head do one request; what it frees or completes is noted at once, with the time at which that is so. */
static void transfer(struct disk *d, struct heap *answers, struct task *t, double start, double way) {
    uint64_t end = t->offset + t->length;
    bool is_buffered = is_read_ahead(d, t) && end <= d->head;
    d->head_free = start + way + (is_buffered ? 0 : t->length * 1e9 / d->p.media);
    d->head = is_buffered ? d->head : end;
    d->reads_on = t->op == OP_READ;
    if (t->owner) {
        heap_push(answers, (uint64_t)(d->head_free + (t->op == OP_READ ? d->p.read : d->p.write)), t->owner);
    } else {
        d->cached -= t->length;
        while (d->barred.first && has_room(d, d->barred.first->length))
            admit(d, answers, remove_at(&d->barred, &d->barred.first), d->head_free);
    }
    free(t);
    finish_flushes(d, answers, d->head_free);
}

/* When the head begins its next request: it is free then, and at least one has come. */
static double next_start(const struct disk *d) {
    double host = d->host.first ? d->host.first->arrival : INFINITY;
    double cache = d->cache.first ? d->cache.first->arrival : INFINITY;
    return later(d->head_free, host < cache ? host : cache);
}

void disk_advance(struct disk *d, struct heap *answers, uint64_t now) {
    for (double start; (start = next_start(d)) <= (double)now;) {
        double way = INFINITY;
        struct queue *q = &d->host;
        struct task **chosen = nearest(d, q, start, &way);
        bool starves = chosen && start - (*chosen)->arrival > PATIENCE_NS;
        if (!chosen || (!starves && (d->flushes.first || d->barred.first))) {
            struct task **other = nearest(d, &d->cache, start, &way);
            if (other) {
                chosen = other;
                q = &d->cache;
            }
        }
        transfer(d, answers, remove_at(q, chosen), start, way);
    }
}

void disk_submit(struct disk *d, struct heap *answers, uint64_t now, enum operation op, uint64_t offset,
                 uint32_t length, void *owner) {
    disk_advance(d, answers, now);
    if (op == OP_FLUSH && d->p.protected) {
        heap_push(answers, now + (uint64_t)d->p.flush, owner);
        return;
    }
    struct task *t = allocate(1, sizeof *t);
    *t = (struct task){.op = op, .offset = offset, .order = d->orders++, .length = length, .owner = owner};
    t->arrival = (double)now;
    if (op == OP_FLUSH) {
        append(&d->flushes, t);
        finish_flushes(d, answers, later((double)now, d->head_free));
    } else if (op == OP_READ || d->p.cache == 0) {
        append(&d->host, t);
    } else if (!d->barred.first && has_room(d, length)) {
        admit(d, answers, t, (double)now);
    } else {
        append(&d->barred, t);
    }
}

uint64_t disk_next(const struct disk *d) {
    double start = next_start(d);
    return start < INFINITY ? (uint64_t)ceil(start) : NEVER;
}
