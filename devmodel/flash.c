#include "flash.h"

#include "memory.h"
#include "noise.h"
#include "streams.h"
#include "units.h"

#include <stdlib.h>

/* Written data on their way from the cache to flash. */
struct destage {
    double stored; /* when */
    uint32_t length;
};

/* The bus, or one direction of it. */
struct bus {
    double rate, free;
};

struct flash {
    struct parameters p;
    struct noise noise;
    struct streams reads, writes;
    struct units *units;
    double *channel_free;      /* when each channel is: a heap, the first one on top */
    struct bus bus, write_bus; /* the second one only where it is not the first */
    double flush_free, stalled_until;
    double unstalled;      /* bytes since the last stall */
    double gathered;       /* bytes written since the last flush that stored them */
    bool dirty;            /* something was written since the last flush */
    struct destage *cache; /* ring, in the order of storing */
    size_t cache_head, cache_count, cache_room;
    double cached, stored; /* bytes in the cache; when the last of them is stored */
    double room_at;        /* when the last write found room: none that comes later does before */
};

static double later(double a, double b) {
    return a > b ? a : b;
}

static double transfer(double bytes, double rate) {
    return rate > 0 ? bytes * 1e9 / rate : 0;
}

struct flash *flash_new(const struct parameters *p) {
    struct flash *f = allocate(1, sizeof *f);
    f->p = *p;
    if (p->sequential_read < 0)
        f->p.sequential_read = p->read;
    f->bus.rate = p->bus;
    f->write_bus.rate = p->write_bus;
    f->noise = (struct noise){p->seed, p->jitter};
    f->channel_free = allocate((size_t)p->channels, sizeof *f->channel_free);
    if (p->unit > 0 && !(p->protected && p->cache > 0)) /* a cache that need not be stored can wait for whole units */
        f->units = units_new((uint64_t)p->unit, (size_t)(p->cache / p->unit));
    return f;
}

void flash_free(struct flash *f) {
    if (f->units)
        units_free(f->units);
    free(f->channel_free);
    free(f->cache);
    free(f);
}

/* Occupy the channel that is free first for some time; returns when that is over. The channels are a heap. */
static double use_channel(struct flash *f, double from, double latency) {
    size_t count = (size_t)f->p.channels, i = 0;
    double *heap = f->channel_free, done = later(from, heap[0]) + latency;
    for (size_t child = 1; child < count; child = 2 * i + 1) {
        if (child + 1 < count && heap[child + 1] < heap[child])
            child++;
        if (heap[child] >= done)
            break;
        heap[i] = heap[child];
        i = child;
    }
    return heap[i] = done;
}

/*
 * Send bytes over the bus; returns when they are there. They start when the request is `ready`; the bus itself is busy
 * with what has arrived so far, in the order of arrival: a request that waits for its channel does not keep it.
 */
static double use_bus(struct bus *bus, double now, double ready, double bytes) {
    double time = transfer(bytes, bus->rate);
    bus->free = later(bus->free, now) + time;
    return later(ready + time, bus->free);
}

static double submit_read(struct flash *f, double now, uint64_t offset, uint32_t length) {
    bool continues = streams_continue(&f->reads, offset, length);
    double latency = continues ? f->p.sequential_read : f->p.read;
    if (f->stored > now)
        latency = later(latency, f->p.read_while_draining);
    double ready = use_channel(f, later(now, f->stalled_until), noise_on(&f->noise, latency));
    return use_bus(&f->bus, now, ready, length);
}

/* Drop what has been stored by a time from the cache. */
static void settle(struct flash *f, double now) {
    while (f->cache_count && f->cache[f->cache_head].stored <= now) {
        f->cached -= f->cache[f->cache_head].length;
        f->cache_head = (f->cache_head + 1) % f->cache_room;
        f->cache_count--;
    }
}

/* Return when so many bytes have room in the cache; a request larger than the cache waits until that is empty. */
static double wait_for_room(struct flash *f, double now, uint32_t length) {
    double from = now;
    settle(f, from);
    while (f->cache_count && f->cached + length > f->p.cache) {
        from = f->cache[f->cache_head].stored;
        settle(f, from);
    }
    return f->room_at = later(f->room_at, from);
}

static void enlarge_ring(struct flash *f) {
    size_t room = f->cache_room ? 2 * f->cache_room : 1024;
    struct destage *larger = allocate(room, sizeof *larger);
    for (size_t i = 0; i < f->cache_count; i++)
        larger[i] = f->cache[(f->cache_head + i) % f->cache_room];
    free(f->cache);
    f->cache = larger;
    f->cache_head = 0;
    f->cache_room = room;
}

/* Store bytes after all that came before; returns when they are stored. */
static double store(struct flash *f, double from, bool continues, uint32_t length) {
    double overhead = continues ? f->p.sequential_write : f->p.random_write;
    f->unstalled += length;
    if (f->p.stall > 0 && f->unstalled >= f->p.stall_every) {
        f->unstalled = 0;
        f->stalled_until = from + f->p.stall;
        f->stored = later(from, f->stored) + f->p.stall;
    }
    return f->stored = later(from, f->stored) + transfer(length, f->p.drain) + overhead;
}

static struct bus *bus_to(struct flash *f) {
    return f->write_bus.rate > 0 ? &f->write_bus : &f->bus;
}

static double write_cached(struct flash *f, double now, bool continues, uint32_t length) {
    double accepted = later(wait_for_room(f, now, length), f->stalled_until);
    if (f->cache_count == f->cache_room)
        enlarge_ring(f);
    size_t end = (f->cache_head + f->cache_count++) % f->cache_room;
    f->cache[end] = (struct destage){store(f, accepted, continues, length), length};
    f->cached += length;
    return use_bus(bus_to(f), now, accepted + noise_on(&f->noise, f->p.write), length);
}

/* Without a cache a write is answered when it is stored, and fills its units by itself. */
static double write_through(struct flash *f, double now, bool continues, uint32_t length) {
    double latency = noise_on(&f->noise, f->p.write);
    if (f->units && units_flush(f->units))
        latency += f->p.fill;
    double ready = use_channel(f, later(now, f->stalled_until), latency);
    double stored = store(f, now, continues, length);
    return use_bus(bus_to(f), now, later(ready, stored), length);
}

static double submit_write(struct flash *f, double now, uint64_t offset, uint32_t length) {
    bool continues = streams_continue(&f->writes, offset, length);
    f->dirty = true;
    f->gathered += length;
    if (f->units)
        units_write(f->units, offset, length);
    return f->p.cache > 0 ? write_cached(f, now, continues, length) : write_through(f, now, continues, length);
}

/*
 * All that was written before is stored, units that were written in part are filled (as many at a time as there are
 * channels), then the device notes where everything is. With power-loss protection only the last happens; when
 * nothing was written since the last flush, that one costs no more than a write. Where small flushed writes are merged,
 * nor does one until enough was written for all of them, and what is stored then are whole units.
 */
static double submit_flush(struct flash *f, double now) {
    if (f->gathered < f->p.merge)
        return later(now, f->stalled_until) + noise_on(&f->noise, f->p.write);
    f->gathered = 0;
    double from = later(later(now, f->stalled_until), f->flush_free);
    double latency = noise_on(&f->noise, f->p.flush);
    if (!f->dirty && f->p.write < latency)
        latency = f->p.write;
    if (!f->p.protected) {
        size_t partly = f->units ? units_flush(f->units) : 0;
        if (f->p.merge > 0 && f->p.merge >= f->p.unit)
            partly = 0;
        size_t channels = (size_t)f->p.channels;
        latency += (double)((partly + channels - 1) / channels) * f->p.fill;
        from = later(from, f->stored);
    }
    f->dirty = false;
    return f->flush_free = from + latency;
}

uint64_t flash_submit(struct flash *f, uint64_t now, enum operation op, uint64_t offset, uint32_t length) {
    if (op == OP_READ)
        return (uint64_t)submit_read(f, (double)now, offset, length);
    if (op == OP_WRITE)
        return (uint64_t)submit_write(f, (double)now, offset, length);
    return (uint64_t)submit_flush(f, (double)now);
}
