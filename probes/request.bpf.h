// What a request is: of the followed device or not, which operation, which slot among those in flight.
#pragma once

#include "counters.bpf.h"
#include "memory.bpf.h"

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

static __always_inline u32 classify_bio(struct config_t *c, u64 bio)
{
    u32 op = get_operation(LOAD(bio, bio, bi_opf, u32));
    u64 disk = LOAD(LOAD(bio, bio, bi_bdev, u64), block_device, bd_disk, u64);
    int is_ours = c && is_followed(c, LOAD(disk, gendisk, queue, u64), disk);
    return is_ours && is_in_range(LOAD(bio, bio, bi_sector, u64), op) ? op : OPS;
}

static __always_inline u32 get_queue(u64 *request)
{
    return QUEUES == 1 ? 0 : LOAD(GET(request, request__mq_hctx, u64), blk_mq_hw_ctx, queue_num, u32);
}

// With an I/O scheduler the scheduler's tag stays with the request for life, without one the driver's does. A FLUSH
// borrows the tag of the request that asked for it; there is one of them per hardware queue at a time.
static __always_inline struct slot_t *get_slot(u64 *request, u32 queue, u32 op)
{
    s32 tag = GET(request, request__internal_tag, s32);
    if (tag < 0)
        tag = GET(request, request__tag, s32);
    if (op == OP_FLUSH)
        tag = SLOTS - 1;
    else if ((u32)tag >= SLOTS - 1)
        return 0;
    u32 key = queue * SLOTS + tag;
    return queue < QUEUES ? slots.lookup(&key) : 0;
}

static __always_inline struct totals_t *get_totals(struct config_t *c, u32 op)
{
    u32 key = (c->epoch & 1) * OPS + op;
    return totals.lookup(&key);
}

static __always_inline int is_counted(u8 owner)
{
    return !SCOPE_PROCESS || owner == OWN || owner == INODE || owner == DEVICE_FLUSH;
}
