// What all parts of the block program share: what it counts, per request in flight, operation and hardware queue.
#pragma once

#include "buckets.bpf.h"
#include "device.bpf.h"
#include "sizes.bpf.h"

#define DEPTHS 1024  // depth is exact below, one bucket from there on
#define DEVICE (QUEUES > 1 ? QUEUES : 0)  // among the queues: the whole device
#define FLAG(name) (1u << __REQ_##name)

enum { UNSEEN, OWN, INODE, JOURNAL, DEVICE_FLUSH, FOREIGN, UNKNOWN, OWNERS };
enum { FREE, ISSUED, REQUEUED };

// What is known of a request when it is submitted.
struct asked_t {
    u8 owner, epoch;
    u16 file, submitter;
    u8 is_cached;
};
#ifdef TRACE
// A record of the trace, whose parts become known one after the other.
struct note_t {
    u64 issued_at, wait, sector, inode, offset, latency;
    u32 bytes, device, pid, thread;
    char comm[16];
    u16 queue, file;
    u8 flags, op, owner, failed;
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
// One per line of the processor's cache, behind `lead`: values of an array begin 8 bytes before a line.
struct queue_t { u64 lead, depth, last, fetched, trail[4]; };
struct depths_t { u64 time[DEPTHS + 1]; };
struct totals_t {
    u64 completed, latency_ns, aligned, sequential, sequential_bytes, appended, sync, meta, requests[OWNERS], bytes[OWNERS];
    u64 fua, preflush, early, requeues, errors, lost, merges, splits, unfiled;
    u64 hidden, hidden_ns;             // requests whose end was not seen, and how long they counted as in flight
    u64 unstarted, unstarted_ns, late; // whose issue was not seen, how long they did not, and those of them of this run
    u64 passthrough, passthrough_bytes;  // commands that are neither a read nor a write of the block layer
    u64 dirtied, written_back;  // bytes of cached pages that the followed processes dirtied, and of theirs that were written
};
struct details_t { u64 latency[BUCKETS], wait[BUCKETS], sizes[EXACT_SIZES]; };

BPF_ARRAY(slots, struct slot_t, (SLOTS * QUEUES));
BPF_ARRAY(queues, struct queue_t, QUEUES + 1);
BPF_ARRAY(depths, struct depths_t, 2 * QUEUES);       // a queue mostly has one processor
BPF_PERCPU_ARRAY(device_depths, struct depths_t, 2);  // all processors would fetch its lines from each other
BPF_PERCPU_ARRAY(totals, struct totals_t, 2 * OPS);
BPF_PERCPU_ARRAY(details, struct details_t, 2 * OPS);
