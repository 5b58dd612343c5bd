// Whose request it is, asked in the submitter's context: at issue and completion anybody may be running.
#pragma once

#include "depth.bpf.h"
#include "event_trace.bpf.h"
#include "file.bpf.h"
#include "folio.bpf.h"
#include "followed.bpf.h"
#include "stack.bpf.h"
#include "submitter.bpf.h"

#define PF_KTHREAD 0x00200000

BPF_TABLE("lru_hash", u64, u64, dirtied, 65536);  // inode -> its number, of files that the run's processes dirtied
#if STACKED || !defined(HAVE_block_io_start)
BPF_TABLE("lru_hash", u64, struct asked_t, bios, 65536);
#endif

// Journal and metadata belong to no process: jbd2's thread, XFS' log and buffers, the device's own page cache.
static __always_inline u8 get_owner(struct config_t *c, struct origin_t *origin, int is_kernel, u32 flags)
{
    if (origin->pseudo == JOURNAL_FILE)
        return JOURNAL;  // also where whoever waits for it writes it, as with XFS
    if (c->is_following && is_of_followed())
        return OWN;
    int is_write = flags & 1;
    if (flags & FLAG(META) && (is_kernel || is_write))
        return JOURNAL;
    u64 inode = is_write && origin->is_cached ? origin->inode : 0;
    u64 *number = inode ? dirtied.lookup(&inode) : 0;
    if (number && *number == LOAD(inode, inode, i_ino, u64))
        return INODE;
    if (inode && get_type(inode) == S_IFBLK)
        return JOURNAL;
    return is_kernel ? UNKNOWN : FOREIGN;
}

// What was asked of the device: the flush machinery clears these flags before it issues.
static __always_inline void count_barriers(struct config_t *c, u32 flags, u32 bytes, struct asked_t *asked)
{
    u32 op = get_operation(flags);
    if (!(flags & (FLAG(FUA) | FLAG(PREFLUSH))) || op >= OPS)
        return;
    if (flags & FLAG(PREFLUSH))
        count_submitter(c, asked->submitter, OP_FLUSH, 0);
    struct totals_t *t = is_counted(asked->owner) ? get_totals(c, bytes ? op : OP_FLUSH) : 0;
    if (!t)
        return;
    t->fua += !!(flags & FLAG(FUA));
    t->preflush += !!(flags & FLAG(PREFLUSH));
}

// `has_device`: whether the bio names a device that has a number.
static __always_inline void identify(struct config_t *c, u64 bio, int has_device, u32 flags, u32 bytes, struct asked_t *asked)
{
    u64 task = CURRENT_TASK();
    struct origin_t origin = {};
    int is_kernel = !!(FOLLOW(task, task_struct__flags, u32) & PF_KTHREAD);
    if (bio && bytes && get_operation(flags) <= OP_WRITE)
        find_origin(bio, has_device, flags, task, is_kernel, &origin);
    asked->epoch = c->epoch;
    asked->owner = get_owner(c, &origin, is_kernel, flags);
    asked->file = is_measured(c) ? find_file(&origin) : NO_FILE;
    asked->is_cached = origin.is_cached && (asked->owner == OWN || asked->owner == INODE);
    asked->submitter = is_measured(c) ? find_submitter(task) : MAX_SUBMITTERS;
}

static __always_inline void ask(struct config_t *c, u64 bio, u32 flags, u32 bytes, struct asked_t *asked)
{
#if STACKED
    u64 top = bio ? find_top(bio) : 0;
    struct asked_t *known = top != bio ? bios.lookup(&top) : 0;
    if (known && known->epoch == (u8)c->epoch)
        *asked = *known;
    else
        identify(c, top, !IS_HIDDEN || top != bio, top != bio ? LOAD(top, bio, bi_opf, u32) : flags, bytes, asked);
#else
    identify(c, bio, !IS_HIDDEN, flags, bytes, asked);
#endif
    count_barriers(c, flags, bytes, asked);
}

#if STACKED
// A bio is passed to a device of the stack: below it other threads may submit what becomes of it. Those that the stack
// passes on to itself are asked at its top.
int HANDLER(on_queue)
{
    u64 bio = ctx->args[ARG_block_bio_queue];
    struct config_t *c = get_config();
    if (!c || !is_upper(LOAD(bio, bio, bi_bdev, u64)) || find_bio_above(bio))
        return 0;
    struct asked_t asked = {};
    identify(c, bio, 1, LOAD(bio, bio, bi_opf, u32), LOAD(bio, bio, bi_size, u32), &asked);
    bios.update(&bio, &asked);
    return 0;
}
#endif

#ifdef HAVE_block_io_start  // since 6.5
int HANDLER(on_start)
{
    struct config_t *c = get_config();
    READ(request, request__START_END, ctx->args[ARG_block_io_start]);
    u32 op = classify(c, request);
    if (op == OPS)
        return 0;
    u32 queue = get_queue(c, request);
    struct slot_t *slot = get_slot(request, queue, OP_READ);
    struct asked_t asked = {};
    ask(c, GET(request, request__bio, u64), GET(request, request__cmd_flags, u32), GET(request, request__data_len, u32), &asked);
    if (!slot)
        return 0;
    trace_forgotten(c, slot, queue);
    struct totals_t *t = slot->state == FREE ? 0 : get_totals(c, op);
    if (t)
        forget(c, t, slot, queue);
    slot->asked = asked;
    trace_start(slot, request);
    return 0;
}
#else  // the request is not known yet: remember the bio, and find it as the request's first one at issue
static __always_inline int remember_bio(u64 address)
{
    struct config_t *c = get_config();
    if (classify_bio(c, address) == OPS)
        return 0;
    struct asked_t asked = {};
    ask(c, address, LOAD(address, bio, bi_opf, u32), LOAD(address, bio, bi_size, u32), &asked);
    u64 key = address;
    bios.update(&key, &asked);
    return 0;
}

int HANDLER(on_getrq)
{
    return remember_bio(ctx->args[ARG_block_getrq]);
}
#endif

// Returns the owner; file and submitter stay with the request.
static __always_inline u32 take_asked(struct config_t *c, struct slot_t *slot, u64 *request, u32 op)
{
#ifndef HAVE_block_io_start
    u64 bio = GET(request, request__bio, u64);
    struct asked_t *asked = op == OP_FLUSH ? 0 : bios.lookup(&bio), nobody = {};
    slot->asked = asked ? *asked : nobody;
    bios.delete(&bio);
#endif
    if (op == OP_FLUSH)
        slot->asked.owner = DEVICE_FLUSH;
#if defined(HAVE_block_io_start) && (defined(TYPED) || !STACKED)  // older kernels miss none, and else the stack is too small
    else if (slot->asked.owner == UNSEEN && is_measured(c)) {  // its start was missed: mostly the same thread issues it
        ask(c, GET(request, request__bio, u64), GET(request, request__cmd_flags, u32), GET(request, request__data_len, u32),
            &slot->asked);
        trace_start(slot, request);
    }
#endif
    if (slot->asked.epoch != (u8)c->epoch || slot->asked.owner == UNSEEN) {
        slot->asked.file = NO_FILE;  // what was found in another run has other numbers
        slot->asked.submitter = MAX_SUBMITTERS;
    }
    return slot->asked.owner;
}

// Whether the file system of an inode lies on the followed device, a partition of it, or what is stacked on it.
static __always_inline int is_on_device(struct config_t *c, u64 inode)
{
    u64 device = LOAD(LOAD(inode, inode, i_sb, u64), super_block, s_bdev, u64);
    u64 disk = device ? LOAD(device, block_device, bd_disk, u64) : 0;
    return disk && (find_followed(c, LOAD(disk, gendisk, queue, u64), disk) || is_upper(device));
}

// Not of an event: the monitor runs it at the end of a run, on each inode that `dirtied` knows. Returns how many pages of
// the file are in the page cache, 0 if all of them are written: the tree of its pages has a mark where some are not, in
// bits above those of its own flags.
int on_look(struct bpf_raw_tracepoint_args *ctx)
{
    u64 inode = ctx->args[0], mapping = read_u64(inode + inode__i_mapping);
    int is_the_same = read_u64(inode + inode__i_ino) == ctx->args[1];  // else the file is gone
    return is_the_same && read_u32(mapping + address_space__xa_flags) >> 16 ? read_u64(mapping + address_space__nrpages) : 0;
}

int HANDLER(on_dirty)
{
    struct config_t *c = get_config();
    u64 mapping = ctx->args[ARG_writeback_dirty + 1];
    if (!mapping || !c || !c->is_following || !is_of_followed())
        return 0;
    u64 inode = LOAD(mapping, address_space, host, u64);
    u64 number = LOAD(inode, inode, i_ino, u64), *known = dirtied.lookup(&inode);
    if (inode && (!known || *known != number))
        dirtied.update(&inode, &number);
    struct totals_t *t = is_on_device(c, inode) ? get_totals(c, OP_WRITE) : 0;
    if (t)
        t->dirtied += count_pages(ctx->args[ARG_writeback_dirty]) << PAGE_SHIFT;
    return 0;
}
