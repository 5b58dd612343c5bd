// Requests in flight: the depth of each hardware queue and of the whole device, weighted by time.
#pragma once

#include "counters.bpf.h"

static __always_inline void move_queue(struct config_t *c, u32 queue, struct depths_t *d, u64 now, u64 step)
{
    struct queue_t *q = queues.lookup(&queue);
    if (!q || !d)
        return;
    s64 depth = __sync_fetch_and_add(&q->depth, step);
    if (depth + (s64)step < 0)  // the end of a request that the monitor forgot when it took the device for idle
        __sync_fetch_and_add(&q->depth, -step);
    if (depth < 0)
        depth = 0;
    // A processor of a virtual machine may stand still after it has read the clock. Whoever is overtaken books nothing:
    // with a moment that lies back, the next one would book once more what has been booked since.
    u64 last = q->last;
    if (now <= last || __sync_val_compare_and_swap(&q->last, last, now) != last)
        return;
    if (last < c->since)
        last = c->since;
    if (now > last)
        __sync_fetch_and_add(&d->time[depth < DEPTHS ? depth : DEPTHS], now - last);
}

// Another processor had the line last. A store fetches it while the program goes on; an atomic addition would wait for it.
static __always_inline void fetch_device(void)
{
    u32 device = DEVICE;
    struct queue_t *q = queues.lookup(&device);
    if (q)
        *(volatile u64 *)&q->fetched = 1;
}

static __always_inline void move_depth(struct config_t *c, u32 queue, u64 now, u64 step)
{
    u32 set = c->epoch & 1, key = set * QUEUES + queue;
    if (QUEUES > 1)
        move_queue(c, queue, depths.lookup(&key), now, step);
    move_queue(c, DEVICE, device_depths.lookup(&set), now, step);
}

// How long of this run a request that began at a moment was in flight.
static __always_inline u64 get_time_since(struct config_t *c, u64 began, u64 now)
{
    u64 first = began > c->since ? began : c->since;
    return now > first ? now - first : 0;
}

// A request whose end was never seen counts as in flight until its tag is used again, for so long. Depth is the device's:
// it does not matter whose request it was, nor whether it is of this run.
static __always_inline void count_hidden(struct config_t *c, struct totals_t *t, struct slot_t *slot, u64 now)
{
    t->hidden += 1;
    t->hidden_ns += get_time_since(c, slot->issued_at, now);
}

// A new request has this one's tag, so this one must have ended, unseen: programs may be skipped in nested interrupts.
static __always_inline void forget(struct config_t *c, struct totals_t *t, struct slot_t *slot, u32 queue)
{
    u64 now = bpf_ktime_get_ns();
    if (slot->state == ISSUED) {
        count_hidden(c, t, slot, now);
        move_depth(c, queue, now, -1);
    }
    slot->state = FREE;
}
