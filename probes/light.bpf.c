// Block requests of one device, counted when they complete: how many, sizes, and the time that the kernel itself noted.
//
// One event per request instead of three, and nothing is remembered between two events: about a third of what block.bpf.c
// costs. Whose requests they are, their files, order and merges are known only before, so they are not known here. A request
// of several completions is counted at the last one, with all its bytes. Constants as for block.bpf.c, without STACKED,
// QUEUES and SLOTS.

#include "buckets.bpf.h"
#include "device.bpf.h"
#include "sizes.bpf.h"

// `timed`: requests with a latency; `made`: those of them that count from when they were made, as their issue has no time;
// `empty`: writes that only asked for a flush and were never issued, but are writes to /sys/block/*/stat.
struct totals_t { u64 requests, bytes, timed, made, latency_ns, errors, lost, empty; };
struct details_t { u64 latency[BUCKETS], sizes[EXACT_SIZES]; };

BPF_PERCPU_ARRAY(totals, struct totals_t, 2 * OPS);
BPF_PERCPU_ARRAY(details, struct details_t, 2 * OPS);
BPF_HASH(parts, u64, u64, 4096);  // a request of which a part has completed -> its bytes so far

static __always_inline void add_part(struct config_t *c, u64 request, u32 bytes)
{
    u64 *known = parts.lookup(&request), first = bytes;
    if (known)
        *known += bytes;
    else if (!parts.update(&request, &first))
        __sync_fetch_and_add(&c->partial, 1);
}

static __always_inline u32 take_parts(struct config_t *c, u64 request)
{
    u64 *known = c->partial ? parts.lookup(&request) : 0;
    if (!known)
        return 0;
    u32 bytes = *known;
    parts.delete(&request);
    __sync_fetch_and_add(&c->partial, -1);
    return bytes;
}

static __always_inline void count_latency(struct totals_t *t, struct details_t *d, u64 *request)
{
    u64 issued = GET(request, request__io_start_time_ns, u64),
        began = issued ? issued : GET(request, request__start_time_ns, u64);
    if (!began)
        return;
    u64 now = bpf_ktime_get_ns(), latency_ns = now > began ? now - began : 0;
    t->timed += 1;
    t->made += !issued;
    t->latency_ns += latency_ns;
    d->latency[get_bucket(latency_ns)] += 1;
}

static __always_inline void count_empty(struct config_t *c, u32 op, u64 *request)
{
    u32 key = (c->epoch & 1) * OPS + op;
    struct totals_t *t = GET(request, request__io_start_time_ns, u64) ? 0 : totals.lookup(&key);
    if (t)
        t->empty += 1;
}

int HANDLER(on_complete)
{
    u64 address = ctx->args[ARG_block_rq_complete];
    u32 finished = ctx->args[ARG_block_rq_complete + 2];
    struct config_t *c = get_config();
    READ(request, request__END, address);
    u32 op = classify(c, request);
    if (op == OPS)
        return 0;
    if (!finished && op != OP_FLUSH) {  // a request with a flush in its wake ends twice, then with 0 bytes
        count_empty(c, op, request);
        return 0;
    }
    if (finished < GET(request, request__data_len, u32)) {
        add_part(c, address, finished);
        return 0;
    }
    u32 key = (c->epoch & 1) * OPS + op, bytes = finished + take_parts(c, address);
    struct totals_t *t = totals.lookup(&key);
    struct details_t *d = details.lookup(&key);
    if (!t || !d)
        return 0;
    t->requests += 1;
    t->bytes += bytes;
    t->errors += (u8)ctx->args[ARG_block_rq_complete + 1] != 0;
    count_latency(t, d, request);
    if (op != OP_FLUSH)
        count_size(c, d->sizes, &t->lost, op, bytes);
    return 0;
}
