// What a request is: of the followed device or not, which slot among those in flight.
#pragma once

#include "counters.bpf.h"

#define DISK_SHIFT 44  // of a place: above the highest sector

static __always_inline u32 classify_bio(struct config_t *c, u64 bio)
{
    u32 op = get_operation(LOAD(bio, bio, bi_opf, u32));
    u64 disk = LOAD(LOAD(bio, bio, bi_bdev, u64), block_device, bd_disk, u64);
    struct disk_t *followed = c ? find_followed(c, LOAD(disk, gendisk, queue, u64), disk) : 0;
    return followed && is_in_range(followed, LOAD(bio, bio, bi_sector, u64), op) ? op : OPS;
}

// Its number among the hardware queues of all followed disks.
static __always_inline u32 get_queue(struct config_t *c, u64 *request)
{
    u32 queue = QUEUES == DISKS ? 0 : LOAD(GET(request, request__mq_hctx, u64), blk_mq_hw_ctx, queue_num, u32);
    struct disk_t *disk = DISKS == 1 ? 0 : find_followed(c, GET(request, request__q, u64), 0);
    return disk ? queue + disk->first_queue : queue;
}

// Where it is, as a number that no place on another followed disk has.
static __always_inline u64 get_place(struct config_t *c, u64 *request)
{
    struct disk_t *disk = DISKS == 1 ? 0 : find_followed(c, GET(request, request__q, u64), 0);
    return GET(request, request__sector, u64) | (disk ? disk->first_queue << DISK_SHIFT : 0);
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
