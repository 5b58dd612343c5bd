// The order of accesses to a file, judged one by one; patterns.py names it.
#pragma once

#include "facts.bpf.h"

#define STREAM_AGE 256        // accesses of the same file and direction within which a stream goes on without doubt
#define STREAM_MAX_AGE 1024   // ... and after which it no longer goes on
#define NEAR_LENGTH 3         // accesses in a row that make a stream
#define FAR_LENGTH 8          // ... where some of the first ones are further apart: by chance three are, in small files
#define IS_FAR 0x40           // of struct stream_t's `length`
#define IS_KNOWN 0x80
#define TAIL_BYTES 8192       // what a log writes once more when it goes on: its last block

struct pattern_t {
    u64 judged, sequential, strided, appended, appended_alone, start, length, distance, end;
    u32 run, waiting;
};

struct order_t { u32 strided, appended; };  // how many accesses have turned out to be so by one

// What makes a stream: returns its length with this access, which is IS_KNOWN once it counts.
static __always_inline u8 lengthen(u8 length, u32 gap)
{
    if (gap > STREAM_MAX_AGE || !length)
        return 1;
    if (length & IS_KNOWN)
        return IS_KNOWN;
    length = (length | (gap > STREAM_AGE ? IS_FAR : 0)) + 1;
    return (length & (IS_FAR - 1)) >= (length & IS_FAR ? FAR_LENGTH : NEAR_LENGTH) ? length | IS_KNOWN : length;
}

// How many accesses have turned out to be sequential by the one that made a stream this long.
static __always_inline u32 judge_length(u8 length)
{
    return length == IS_KNOWN ? 1 : length & IS_KNOWN ? length & (IS_FAR - 1) : 0;
}

// Returns how many requests have turned out to be strided by this one: the third of equal distances, and those after.
static __always_inline u32 follow_stride(struct pattern_t *p, u32 now, u64 start, u64 length)
{
    u64 distance = start - p->start;
    int is_step = now && distance && distance != p->length;
    p->run = !is_step ? 0 : distance == p->distance ? p->run + 1 : 1;
    p->distance = distance;
    return p->run == 3 ? 3 : p->run > 3;
}

// Whether a write goes on at an end: begins there, or in the last block before, and reaches it. One comparison does for the
// beginning: at random addresses each of two would be true half of the time, which no processor foresees.
static __always_inline int goes_on(u64 written, u64 tail, u64 start, u64 end)
{
    return written - start <= tail && end >= written;
}

// Appends: writes that go on at the end of what was written, be it the end of the file's last write or the highest one.
// What only writes the last block anew counts once the file has grown. Returns how many have turned out to be appends by
// this one. `tail`: TAIL_BYTES in the unit of the other numbers.
static __always_inline u32 follow_end(struct pattern_t *p, u32 now, u64 start, u64 length, u64 tail)
{
    u64 last = p->start + p->length, highest = p->end, end = start + length;
    if (end > highest)
        p->end = end;
    int on_last = now && goes_on(last, tail, start, end), on_highest = now && goes_on(highest, tail, start, end);
    if (!on_last && !on_highest)
        return 0;
    if (!p->appended && !(on_last && end > last) && !(on_highest && end > highest)) {
        p->waiting += 1;
        return 0;
    }
    u32 turns = 1 + p->waiting;
    p->waiting = 0;
    return turns;
}

// Judges an access by those before it, but for streams. `tail`: as above, 0 for reads.
static __always_inline struct order_t follow_order(struct pattern_t *p, u32 now, u64 start, u64 length, u64 tail)
{
    struct order_t order = {.strided = follow_stride(p, now, start, length)};
    if (tail)
        order.appended = follow_end(p, now, start, length, tail);
    p->start = start;
    p->length = length;
    return order;
}

static __always_inline void count_pattern(struct pattern_t *p, u32 sequential, struct order_t order)
{
    if (sequential)
        __sync_fetch_and_add(&p->sequential, sequential);
    else if (order.appended)
        __sync_fetch_and_add(&p->appended_alone, order.appended);
    else if (order.strided)
        __sync_fetch_and_add(&p->strided, order.strided);
    if (order.appended)
        __sync_fetch_and_add(&p->appended, order.appended);
}
