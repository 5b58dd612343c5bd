// What a request is: of the followed device or not, which slot among those in flight.
#pragma once

#include "counters.bpf.h"

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
