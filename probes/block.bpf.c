// Block requests of one device, counted in the kernel: whose and which file's they are, sizes, order, depth, latency.
//
// Counts a request once, when it is first issued to the device, with the size it has then (after merges). Several disks
// below a stack count as one device. Does not count requests of bio-based devices (they have none), and of passthrough
// commands only the number. WRITE_ZEROES and ZONE_APPEND are
// writes, as in /proc/diskstats; a FLUSH is neither a write nor a size. Raw tracepoints only: no kprobe, no fentry.
// Overhead: see docs/evidence/monitor.md; nothing is sent to user space, which reads the maps.
//
// The monitor writes what comes before this text: members of kernel structs as offsets (request__q, ...; HAVE_... when
// this kernel has an optional one), kernel enumerators, ARG_<tracepoint> = index of the interesting argument, AT_<name> =
// address of a kernel function, TYPE_<name> = BTF id of a struct, TYPED where plain loads are allowed, and IS_HIDDEN,
// STACKED, UNIT_BYTES, DISKS, QUEUES (of all of them), SLOTS, SCOPE_PROCESS, MAX_...

#include "depth.bpf.h"
#include "event_trace.bpf.h"
#include "file.bpf.h"
#include "merge.bpf.h"
#include "owner.bpf.h"
#include "request.bpf.h"
#include "submitter.bpf.h"

static __always_inline void count_request(struct config_t *c, struct totals_t *t, u64 *request, u32 op, u32 file, u64 now)
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
        count_size(c, d->sizes, &t->lost, op, bytes);
        count_file(c, t, file, op, get_place(c, request), bytes);
    }
    if (started && started <= now)
        d->wait[get_bucket(now - started)] += 1;
}

static __always_inline void count_issue(
    struct config_t *c, struct totals_t *t, struct slot_t *slot, u64 *request, u32 op, u64 now)
{
    u32 owner = take_asked(c, slot, request, op), bytes = GET(request, request__data_len, u32);
    slot->issued_at = now;
    slot->epoch = c->epoch;
    asm volatile("" : "+r"(owner));  // keeps the bound before the verifier's eyes
    if (owner >= OWNERS)
        return;
    t->requests[owner] += 1;
    t->bytes[owner] += bytes;
    if (op != OP_FLUSH)  // these were counted when they were asked for
        count_submitter(c, slot->asked.submitter, op, bytes);
    if (op == OP_WRITE && slot->asked.is_cached)
        t->written_back += bytes;
    trace_issue(slot, request, op, now);
    if (is_counted(owner))
        count_request(c, t, request, op, slot->asked.file, now);
}

// What a program sends to the device itself (ioctl, io_uring_cmd), or the driver: it has no sector, nor a file.
static __always_inline void count_passthrough(struct config_t *c, u64 *request)
{
    u32 op = GET(request, request__cmd_flags, u32) & 0xff;
    int is_passthrough = op == REQ_OP_DRV_IN || op == REQ_OP_DRV_OUT;
    struct totals_t *t = is_passthrough && c && find_disk(c, request) ? get_totals(c, op & 1) : 0;
    if (!t)
        return;
    t->passthrough += 1;
    t->passthrough_bytes += GET(request, request__data_len, u32);
}

int HANDLER(on_issue)
{
    struct config_t *c = get_config();
    READ(request, request__END, ctx->args[ARG_block_rq_issue]);
    u32 op = classify(c, request);
    if (op == OPS) {
        count_passthrough(c, request);
        return 0;
    }
    fetch_device();
    u32 queue = get_queue(c, request);
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
    if (before == ISSUED)  // the completion of the request before it was never seen: this one takes over its slot
        count_hidden(c, t, slot, now);
    else
        move_depth(c, queue, now, 1);
    slot->state = ISSUED;
    if (before == REQUEUED)
        slot->issued_at = now;  // counted when it was issued first
    else
        count_issue(c, t, slot, request, op, now);
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

// The end of a request whose issue was not seen: programs that the kernel runs preemptibly miss events of other threads. It
// still holds all that its issue would have told but the moment: that it was made is the earliest that can be. What was
// made before the run is not the run's.
static __always_inline void count_late(struct config_t *c, struct totals_t *t, struct slot_t *slot, u64 address, u32 op)
{
    READ(request, request__END, address);
    u64 now = bpf_ktime_get_ns(), made = GET(request, request__start_time_ns, u64);
    t->unstarted += 1;
    t->unstarted_ns += get_time_since(c, made, now);
// Older kernels miss none, and there, as without types in a trace, the stack is too small.
#if defined(HAVE_block_io_start) && (defined(TYPED) || !defined(TRACE))
    if (made < c->since || !is_measured(c))
        return;
    count_issue(c, t, slot, request, op, made);
    t->late += is_counted(slot->asked.owner);
    if (is_counted(slot->asked.owner))
        trace_end(c, slot, get_queue(c, request), UNSEEN_END, 0);
    slot->asked.owner = UNSEEN;
#endif
}

int HANDLER(on_complete)
{
    u32 finished = ctx->args[ARG_block_rq_complete + 2];
    struct config_t *c = get_config();
    READ(request, request__START_END, ctx->args[ARG_block_rq_complete]);
    u32 op = classify(c, request);
    if (op == OPS)
        return 0;
    fetch_device();
    u32 queue = get_queue(c, request);
    struct totals_t *t = get_totals(c, op);
    struct slot_t *slot = get_slot(request, queue, op);
    if (!t || !slot)
        return 0;
    if (slot->state == FREE) {
        if (finished || op == OP_FLUSH)  // a request with a flush in its wake ends twice, then with 0 bytes
            count_late(c, t, slot, ctx->args[ARG_block_rq_complete], op);
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
    else if (is_counted(slot->asked.owner)) {
        count_latency(c, t, op, now - slot->issued_at);
        trace_end(c, slot, queue, now - slot->issued_at, (u8)ctx->args[ARG_block_rq_complete + 1] != 0);
    }
    slot->state = FREE;
    slot->asked.owner = UNSEEN;
    return 0;
}

int HANDLER(on_requeue)
{
    struct config_t *c = get_config();
    READ(request, request__START_END, ctx->args[ARG_block_rq_requeue]);
    u32 op = classify(c, request);
    if (op == OPS)
        return 0;
    u32 queue = get_queue(c, request);
    struct slot_t *slot = get_slot(request, queue, op);
    struct totals_t *t = get_totals(c, op);
    if (!t || !slot || slot->state != ISSUED)
        return 0;
    slot->state = REQUEUED;
    t->requeues += 1;
    move_depth(c, queue, bpf_ktime_get_ns(), -1);
    return 0;
}
