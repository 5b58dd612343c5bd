// Requests in flight: the depth of each hardware queue and of the whole device, weighted by time.
#pragma once

#include "counters.bpf.h"

#define TRIES 8          // to change a queue's state before another processor does
#define TICK_BITS 4      // moments are kept in units of 16 ns, so that there is room for 39 hours before and after
#define DEPTH_BITS 20    // of a queue's state; the others are the moment since when it is so
#define DEPTH_OF(state) ((state) & ((1 << DEPTH_BITS) - 1))
#define OVERTAKEN_NS (1LL << 30)  // by more than that no processor is, so what seems to be was longer ago than there is room for

// Returns how long a queue had been in a state, 0 where an event that came later has overtaken this one.
static __always_inline u64 get_duration(u64 state, u64 now)
{
    s64 passed = (s64)((now >> TICK_BITS << DEPTH_BITS) - (state - DEPTH_OF(state))) >> DEPTH_BITS << TICK_BITS;
    return passed > 0 ? passed : passed < -OVERTAKEN_NS ? now : 0;
}

static __always_inline void book_depth(struct config_t *c, u32 queue, u64 depth, u64 now, u64 duration)
{
    u32 set = c->epoch & 1, key = set * QUEUES + queue;
    struct depths_t *d;
    u64 of_run = now - c->since;
    if (RARELY(duration > of_run))
        duration = (s64)of_run > 0 ? of_run : 0;
    if (queue == DEVICE) {
        if ((d = device_depths.lookup(&set))) {
            d->area += depth * duration;
            d->time[depth < DEPTHS ? depth : DEPTHS] += duration;
        }
    } else if ((d = queue_depths.lookup(&key)))
        __sync_fetch_and_add(&d->time[depth < DEPTHS ? depth : DEPTHS], duration);
}

// Depth and moment change at once. A processor of a virtual machine may stand still after it has read the clock: whoever is
// overtaken books nothing, as with a moment that lies back the next one would book once more what has been booked since.
static __always_inline void move_queue(struct config_t *c, u32 queue, u64 now, u64 step)
{
    struct queue_t *q = queues.lookup(&queue);
    if (!q)
        return;
#pragma clang loop unroll(disable)
    for (int i = 0; i < TRIES; i++) {
        u64 before = q->state, depth = DEPTH_OF(before), duration = get_duration(before, now);
        u64 moment = USUALLY(duration) ? now >> TICK_BITS << DEPTH_BITS : before - depth;
        // At 0 it stays when a request ends that the monitor forgot when it took the device for idle.
        u64 after = moment + (RARELY(depth + step > depth && (s64)step < 0) ? 0 : depth + step);
        if (USUALLY(__sync_val_compare_and_swap(&q->state, before, after) == before)) {
            if (USUALLY(duration))
                book_depth(c, queue, depth, now, duration);
            return;
        }
    }
    __sync_fetch_and_add(&q->state, step);
}

static __always_inline void move_depth(struct config_t *c, u32 queue, u64 now, u64 step)
{
    if (QUEUES > 1)
        move_queue(c, queue, now, step);
    move_queue(c, DEVICE, now, step);
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
    if (slot->asked.state == ISSUED) {
        count_hidden(c, t, slot, now);
        move_depth(c, queue, now, -1);
    }
    slot->asked.state = FREE;
}
