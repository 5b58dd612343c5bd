// What all parts of the block program share: what it counts, per request in flight, operation and hardware queue.
#pragma once

#include "buckets.bpf.h"

#define DEPTHS 1024          // depth is exact below, one bucket from there on
#define EXACT_SIZES 2048     // multiples of 512 up to 1 MiB have a counter each, other sizes go to a hash
#define FLAG(name) (1u << __REQ_##name)

enum { OP_READ, OP_WRITE, OP_DISCARD, OP_FLUSH, OPS };
enum { UNSEEN, OWN, INODE, JOURNAL, DEVICE_FLUSH, FOREIGN, UNKNOWN, OWNERS };
enum { FREE, ISSUED, REQUEUED };

// Odd epochs are measured; two sets of counters take turns. `disk`: the name of the followed one.
struct config_t {
    u64 queue, since;
    u32 epoch, is_following;
    u64 disk[4];
};
// What is known of a request when it is submitted.
struct asked_t {
    u8 owner, epoch;
    u16 file, submitter;
    u8 is_cached;
};
#ifdef TRACE
struct note_t {
    u64 issued_at, wait, sector, inode, offset;
    u32 bytes, device, pid, flags;
    char comm[16];
};
#define NOTE struct note_t note;
#else
#define NOTE
#endif
// A request in flight: one slot per tag.
struct slot_t {
    u64 issued_at;
    struct asked_t asked;
    u8 state, epoch;
    NOTE
};
struct queue_t { u64 depth, last; };
struct depths_t { u64 time[DEPTHS + 1]; };
struct odd_size_t { u32 set, op, bytes; };
struct totals_t {
    u64 completed, latency_ns, aligned, sequential, appended, sync, meta, requests[OWNERS], bytes[OWNERS];
    u64 fua, preflush, early, requeues, errors, lost, merges, splits, unfiled;
    u64 hidden, hidden_ns;             // requests whose end was not seen, and how long they counted as in flight
    u64 unstarted, unstarted_ns, late; // whose issue was not seen, how long they did not, and those of them of this run
    u64 dirtied, written_back;  // bytes of cached pages that the followed processes dirtied, and of theirs that were written
};
struct details_t { u64 latency[BUCKETS], wait[BUCKETS], sizes[EXACT_SIZES]; };

BPF_ARRAY(config, struct config_t, 1);
BPF_ARRAY(slots, struct slot_t, (SLOTS * QUEUES));
BPF_ARRAY(queues, struct queue_t, QUEUES + 1);  // the last one is the whole device, used when there are several
BPF_ARRAY(depths, struct depths_t, 2 * (QUEUES + 1));
BPF_PERCPU_ARRAY(totals, struct totals_t, 2 * OPS);
BPF_PERCPU_ARRAY(details, struct details_t, 2 * OPS);
BPF_HASH(odd_sizes, struct odd_size_t, u64, 4096);
