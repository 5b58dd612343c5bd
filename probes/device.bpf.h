// The followed device: one disk or several, each whole or a range of it; which requests are its, and what they do.
#pragma once

#include "memory.bpf.h"

enum { OP_READ, OP_WRITE, OP_DISCARD, OP_FLUSH, OPS };

// `queue`: where the kernel has the disk, 0 until it is seen; `first_queue`: the number of its first hardware queue among
// those of all disks.
struct disk_t { u64 queue, name[4], first_sector, end_sector, first_queue; };
// Odd epochs are measured; two sets of counters take turns. `partial`: requests of which a part has completed, in light
// mode.
struct config_t {
    u64 since;
    u32 epoch, is_following;
    u64 partial;
    struct disk_t disks[DISKS];
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
static __always_inline int is_named(struct disk_t *known, u64 disk)
{
    u64 name[4] = {};
    bpf_probe_read_kernel_str(name, sizeof(name), (void *)(disk + gendisk__disk_name));  // more may follow its end
    return name[0] == known->name[0] && name[1] == known->name[1] && name[2] == known->name[2] && name[3] == known->name[3];
}

static __always_inline int are_all_seen(struct config_t *c)
{
    int seen = 1;
#pragma unroll
    for (u32 i = 0; i < DISKS; i++)
        seen &= c->disks[i].queue != 0;
    return seen;
}

// Which of the followed disks has this queue; 0: none of them. `disk`: whose it is, needed until all have been seen.
static __always_inline struct disk_t *find_followed(struct config_t *c, u64 queue, u64 disk)
{
#pragma unroll
    for (u32 i = 0; i < DISKS; i++) {
        struct disk_t *known = &c->disks[i];
        if (known->queue == queue)
            return known;
        if (!known->queue && disk && is_named(known, disk)) {
            known->queue = queue;
            return known;
        }
    }
    return 0;
}

static __always_inline struct disk_t *find_disk(struct config_t *c, u64 *request)
{
    u64 queue = GET(request, request__q, u64), disk = 0;
    if (!are_all_seen(c))
#ifdef HAVE_request_queue__disk  // since 5.15
        disk = LOAD(queue, request_queue, disk, u64);
#else
        disk = GET(request, request__rq_disk, u64);
#endif
    return find_followed(c, queue, disk);
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

static __always_inline int is_in_range(struct disk_t *disk, u64 sector, u32 op)
{
    return op == OP_FLUSH || (sector >= disk->first_sector && sector < disk->end_sector);  // a flush is the whole disk's
}

// The operation of a request of the device, or of the range of it, that is followed; OPS for all others.
static __always_inline u32 classify(struct config_t *c, u64 *request)
{
    u32 op = get_operation(GET(request, request__cmd_flags, u32));
    struct disk_t *disk = c ? find_disk(c, request) : 0;
    return disk && is_in_range(disk, GET(request, request__sector, u64), op) ? op : OPS;
}
