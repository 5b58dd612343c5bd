// The followed device, or a range of it: which requests are its, and what they do.
#pragma once

#include "memory.bpf.h"

enum { OP_READ, OP_WRITE, OP_DISCARD, OP_FLUSH, OPS };

// Odd epochs are measured; two sets of counters take turns. `disk`: the name of the followed one. `partial`: requests
// of which a part has completed, in light mode.
struct config_t {
    u64 queue, since;
    u32 epoch, is_following;
    u64 disk[4], partial;
};
BPF_ARRAY(config, struct config_t, 1);

static __always_inline struct config_t *get_config(void)
{
    int zero = 0;
    return config.lookup(&zero);
}

static __always_inline int is_measured(struct config_t *c)
{
    return c->epoch & 1;
}

// By its name: what a multipath device hides below itself has no number.
static __always_inline int is_our_disk(struct config_t *c, u64 disk)
{
    u64 name[4] = {};
    bpf_probe_read_kernel_str(name, sizeof(name), (void *)(disk + gendisk__disk_name));  // more may follow its end
    return name[0] == c->disk[0] && name[1] == c->disk[1] && name[2] == c->disk[2] && name[3] == c->disk[3];
}

static __always_inline int is_followed(struct config_t *c, u64 queue, u64 disk)
{
    if (c->queue)
        return c->queue == queue;
    if (!disk || !is_our_disk(c, disk))
        return 0;
    c->queue = queue;
    return 1;
}

static __always_inline int is_ours(struct config_t *c, u64 *request)
{
    u64 queue = GET(request, request__q, u64), disk = 0;
    if (!c->queue)
#ifdef HAVE_request_queue__disk  // since 5.15
        disk = LOAD(queue, request_queue, disk, u64);
#else
        disk = GET(request, request__rq_disk, u64);
#endif
    return is_followed(c, queue, disk);
}

// By a table of three bits each, so that the verifier follows one way instead of one per operation.
#define ENTRY(kernels, ours) (((ours) ^ (u64)OPS) << (kernels) * 3)
#define OPERATIONS \
    (0444444444444444444444ULL ^ ENTRY(REQ_OP_READ, OP_READ) ^ ENTRY(REQ_OP_WRITE, OP_WRITE) \
        ^ ENTRY(REQ_OP_WRITE_ZEROES, OP_WRITE) ^ ENTRY(REQ_OP_ZONE_APPEND, OP_WRITE) ^ ENTRY(REQ_OP_DISCARD, OP_DISCARD) \
        ^ ENTRY(REQ_OP_SECURE_ERASE, OP_DISCARD) ^ ENTRY(REQ_OP_FLUSH, OP_FLUSH))

static __always_inline u32 get_operation(u32 flags)
{
    u64 op = flags & 0xff;
    return op < 21 ? OPERATIONS >> op * 3 & 7 : OPS;
}

static __always_inline int is_in_range(u64 sector, u32 op)
{
    return op == OP_FLUSH || (sector >= FIRST_SECTOR && sector < END_SECTOR);  // a flush is the whole disk's
}

// The operation of a request of the device, or of the range of it, that is followed; OPS for all others.
static __always_inline u32 classify(struct config_t *c, u64 *request)
{
    u32 op = get_operation(GET(request, request__cmd_flags, u32));
    return c && is_ours(c, request) && is_in_range(GET(request, request__sector, u64), op) ? op : OPS;
}
