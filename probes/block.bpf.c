// Block requests of one device, counted in the kernel: whose they are, sizes, alignment, streams, depth, latency.
//
// Counts a request once, when it is first issued to the device, with the size it has then (after merges). Does not
// count passthrough commands, nor requests of bio-based devices (they have none). WRITE_ZEROES and ZONE_APPEND are
// writes, as in /proc/diskstats; a FLUSH is neither a write nor a size. Raw tracepoints only: no kprobe, no fentry.
// Overhead: 0.45 to 0.7 us per request with attribution; nothing is sent to user space, which reads the maps.
//
// The monitor writes what comes before this text: members of kernel structs as offsets (request__q, ...; HAVE_... when
// this kernel has an optional one), kernel enumerators, ARG_<tracepoint> = index of the interesting argument, and
// DEVICE_MAJOR, DEVICE_MINOR, FIRST_SECTOR, END_SECTOR (a partition is a range), UNIT_BYTES, QUEUES, SLOTS, SCOPE_PROCESS.

#define DEPTHS 1024          // depth is exact below, one bucket from there on
#define BUCKETS 176          // of time: four per power of two nanoseconds, the last one from 8.8e12 ns on
#define EXACT_SIZES 2048     // multiples of 512 up to 1 MiB have a counter each, other sizes go to a hash
#define STREAM_BITS 10       // open streams per direction that sequentiality is judged on
#define STREAM_AGE 256       // requests in the same direction, after which a stream no longer goes on
#define HASH_SECTOR(sector) ((sector) * 0x9E3779B97F4A7C15ULL >> (64 - STREAM_BITS))
#define PF_KTHREAD 0x00200000
#define FLAG(name) (1u << __REQ_##name)
#define GET(copy, member, type) (*(type *)((char *)(copy) + (member)))

enum { OP_READ, OP_WRITE, OP_DISCARD, OP_FLUSH, OPS };
enum { UNSEEN, OWN, INODE, JOURNAL, DEVICE_FLUSH, FOREIGN, UNKNOWN, OWNERS };
enum { FREE, ISSUED, REQUEUED };

struct config_t { u64 queue, cgroup, since; u32 epoch; };  // odd epochs are measured; two sets of counters take turns
#ifdef TRACE
struct note_t { u64 issued_at, wait, sector, inode, offset; u32 bytes, device, pid, flags; char comm[16]; };
#define NOTE struct note_t note;
#else
#define NOTE
#endif
struct slot_t { u64 issued_at; u8 owner, state, epoch; NOTE };  // one per tag: the identity of a request in flight
struct queue_t { u64 depth, last; };
struct depths_t { u64 time[DEPTHS + 1]; };
struct stream_t { u64 end; u32 at, length; };  // length in requests: 1, 2, 3, then 4 for more
struct streams_t { struct stream_t open[2][1 << STREAM_BITS]; u32 issued[2]; };
struct odd_size_t { u32 set, op, bytes; };
struct totals_t {
    u64 requests[OWNERS], bytes[OWNERS], aligned, sequential, fua, preflush, sync, meta;
    u64 completed, latency_ns, early, unstarted, requeues, errors, lost;
};
struct details_t { u64 latency[BUCKETS], wait[BUCKETS], sizes[EXACT_SIZES]; };

BPF_ARRAY(config, struct config_t, 1);
BPF_ARRAY(slots, struct slot_t, SLOTS * QUEUES);
BPF_ARRAY(queues, struct queue_t, QUEUES + 1);  // the last one is the whole device, used when there are several
BPF_ARRAY(depths, struct depths_t, 2 * (QUEUES + 1));
BPF_ARRAY(streams, struct streams_t, 1);
BPF_PERCPU_ARRAY(totals, struct totals_t, 2 * OPS);
BPF_PERCPU_ARRAY(details, struct details_t, 2 * OPS);
BPF_HASH(odd_sizes, struct odd_size_t, u64, 4096);
BPF_TABLE("lru_hash", u64, u64, dirtied, 65536);  // inode -> its number, of files that the run's processes dirtied
#ifndef HAVE_block_io_start
BPF_TABLE("lru_hash", u64, u8, bios, 65536);
#endif

#include "request.bpf.h"
#include "depth.bpf.h"
#include "event_trace.bpf.h"
#include "owner.bpf.h"

static __always_inline u32 get_bucket(u64 ns)
{
    u32 power = 0;
    u64 rest = ns;
    if (rest >> 32) { power += 32; rest >>= 32; }
    if (rest >> 16) { power += 16; rest >>= 16; }
    if (rest >> 8) { power += 8; rest >>= 8; }
    if (rest >> 4) { power += 4; rest >>= 4; }
    if (rest >> 2) { power += 2; rest >>= 2; }
    power += rest >> 1;
    u32 bucket = power < 2 ? 0 : power * 4 + ((ns >> (power - 2)) & 3);
    return bucket < BUCKETS ? bucket : BUCKETS - 1;
}

// A request is sequential when it is one of three or more that follow on each other, each within STREAM_AGE requests of
// the one before: in a random workload pairs happen by chance, the more often the more ends are remembered. Returns how
// many requests have turned out to be sequential by this one.
static __always_inline u32 follow_stream(u32 op, u64 sector, u64 end)
{
    int zero = 0;
    struct streams_t *s = streams.lookup(&zero);
    if (!s || op > OP_WRITE)
        return 0;
    u32 now = s->issued[op & 1]++, length = 1;
    struct stream_t *old = &s->open[op & 1][HASH_SECTOR(sector)], *new = &s->open[op & 1][HASH_SECTOR(end)];
    if (old->length && old->end == sector && now - old->at <= STREAM_AGE) {
        length = old->length < 3 ? old->length + 1 : 4;
        old->length = 0;
    }
    new->end = end;
    new->at = now;
    new->length = length;
    return length == 3 ? 3 : length > 3;
}

static __always_inline void count_size(struct config_t *c, struct details_t *d, struct totals_t *t, u32 op, u32 bytes)
{
    u64 index = bytes / 512 - 1;
    asm volatile("" : "+r"(index));  // keeps the compiler from moving the bound away from the verifier's eyes
    if (bytes % 512 == 0 && index < EXACT_SIZES) {
        d->sizes[index] += 1;
        return;
    }
    u64 one = 1;
    struct odd_size_t key = {.set = c->epoch & 1, .op = op, .bytes = bytes};
    u64 *count = odd_sizes.lookup(&key);
    if (count)
        __sync_fetch_and_add(count, 1);
    else if (odd_sizes.update(&key, &one))
        t->lost += 1;
}

static __always_inline void count_request(struct config_t *c, struct totals_t *t, u64 *request, u32 op, u64 now)
{
    u32 key = (c->epoch & 1) * OPS + op, bytes = GET(request, request__data_len, u32);
    u64 sector = GET(request, request__sector, u64), started = GET(request, request__start_time_ns, u64);
    u32 flags = GET(request, request__cmd_flags, u32);
    struct details_t *d = details.lookup(&key);
    if (!d)
        return;
    t->sync += !!(flags & FLAG(SYNC));
    t->meta += !!(flags & FLAG(META));
    if (op != OP_FLUSH) {
        t->aligned += (sector * 512) % UNIT_BYTES == 0 && bytes % UNIT_BYTES == 0;
        t->sequential += follow_stream(op, sector, sector + (bytes >> 9));
        count_size(c, d, t, op, bytes);
    }
    if (started && started <= now)
        d->wait[get_bucket(now - started)] += 1;
}

int on_issue(struct bpf_raw_tracepoint_args *ctx)
{
    u64 request[request__END / 8];
    struct config_t *c = get_config();
    if (!c || bpf_probe_read_kernel(request, sizeof(request), (void *)ctx->args[ARG_block_rq_issue]) || !is_ours(c, request))
        return 0;
    u32 op = get_operation(GET(request, request__cmd_flags, u32)), queue = get_queue(request);
    if (op >= OPS || !is_in_range(request, op))
        return 0;
    struct totals_t *t = get_totals(c, op);
    struct slot_t *slot = get_slot(request, queue, op);
    if (!t)
        return 0;
    if (!slot) {
        t->lost += 1;
        return 0;
    }
    u64 now = bpf_ktime_get_ns();
    u8 before = slot->state;
    if (before != ISSUED)  // else the completion of the request before it was never seen: take over its place
        move_depth(c, queue, now, 1);
    slot->issued_at = now;
    slot->state = ISSUED;
    if (before == REQUEUED)
        return 0;  // counted when it was issued first
    slot->epoch = c->epoch;
    u8 owner = take_owner(slot, request, op);
    t->requests[owner] += 1;
    t->bytes[owner] += GET(request, request__data_len, u32);
    slot->owner = owner;
    trace_issue(slot, request, op, now);
    if (is_counted(owner))
        count_request(c, t, request, op, now);
    return 0;
}

static __always_inline void count_latency(struct config_t *c, struct totals_t *t, u32 op, u64 latency_ns)
{
    u32 key = (c->epoch & 1) * OPS + op;
    struct details_t *d = details.lookup(&key);
    if (!d)
        return;
    t->completed += 1;
    t->latency_ns += latency_ns;
    d->latency[get_bucket(latency_ns)] += 1;
}

int on_complete(struct bpf_raw_tracepoint_args *ctx)
{
    u64 request[request__START_END / 8];
    u32 finished = ctx->args[ARG_block_rq_complete + 2];
    struct config_t *c = get_config();
    if (!c || bpf_probe_read_kernel(request, sizeof(request), (void *)ctx->args[ARG_block_rq_complete]) || !is_ours(c, request))
        return 0;
    u32 op = get_operation(GET(request, request__cmd_flags, u32)), queue = get_queue(request);
    if (op >= OPS || !is_in_range(request, op))
        return 0;
    struct totals_t *t = get_totals(c, op);
    struct slot_t *slot = get_slot(request, queue, op);
    if (!t || !slot)
        return 0;
    if (slot->state == FREE) {
        t->unstarted += finished || op == OP_FLUSH;  // a request with a flush in its wake ends twice, then with 0 bytes
        return 0;
    }
    t->errors += (u8)ctx->args[ARG_block_rq_complete + 1] != 0;
    if (finished < GET(request, request__data_len, u32))
        return 0;  // a part of it
    u64 now = bpf_ktime_get_ns();
    if (slot->state == ISSUED)
        move_depth(c, queue, now, -1);
    if (slot->epoch != (u8)c->epoch)
        t->early += 1;
    else if (is_counted(slot->owner)) {
        count_latency(c, t, op, now - slot->issued_at);
        trace_end(c, slot, queue, now - slot->issued_at, (u8)ctx->args[ARG_block_rq_complete + 1] != 0);
    }
    slot->state = FREE;
    slot->owner = UNSEEN;
    return 0;
}

int on_requeue(struct bpf_raw_tracepoint_args *ctx)
{
    u64 request[request__START_END / 8];
    struct config_t *c = get_config();
    if (!c || bpf_probe_read_kernel(request, sizeof(request), (void *)ctx->args[ARG_block_rq_requeue]) || !is_ours(c, request))
        return 0;
    u32 op = get_operation(GET(request, request__cmd_flags, u32)), queue = get_queue(request);
    struct slot_t *slot = get_slot(request, queue, op);
    struct totals_t *t = op < OPS ? get_totals(c, op) : 0;
    if (!t || !slot || slot->state != ISSUED)
        return 0;
    slot->state = REQUEUED;
    t->requeues += 1;
    move_depth(c, queue, bpf_ktime_get_ns(), -1);
    return 0;
}
