// io_uring: a request counts when the kernel takes it over from the ring, and ends when its completion is posted.
#pragma once

#include "asynchronous.bpf.h"

#ifdef HAVE_IO_URING
#define IS_FIXED_FILE 1  // REQ_F_FIXED_FILE
#define FILE_FLAGS 7ULL  // in the low bits of a registered file's address

enum {  // of enum io_uring_op
    RING_READV = 1,
    RING_WRITEV = 2,
    RING_FSYNC = 3,
    RING_READ_FIXED = 4,
    RING_WRITE_FIXED = 5,
    RING_SYNC_RANGE = 8,
    RING_READ = 22,
    RING_WRITE = 23,
    RING_READV_FIXED = 60,
    RING_WRITEV_FIXED = 61,
};

BPF_PERCPU_ARRAY(numbers, u64, 2);

// What the verifier takes for a pointer, with which one may not calculate; `use`: who calls, as one may interrupt the other.
static __always_inline u64 to_number(u64 pointer, u32 use)
{
    u64 *number = numbers.lookup(&use);
    if (!number)
        return 0;
    *number = pointer;
    asm volatile("" ::: "memory");
    return *number;
}

static __always_inline u32 get_ring_operation(u8 opcode)
{
    if (opcode == RING_READ || opcode == RING_READV || opcode == RING_READ_FIXED || opcode == RING_READV_FIXED)
        return READ;
    if (opcode == RING_WRITE || opcode == RING_WRITEV || opcode == RING_WRITE_FIXED || opcode == RING_WRITEV_FIXED)
        return WRITE;
    return opcode == RING_FSYNC || opcode == RING_SYNC_RANGE ? SYNC : OPS;
}

static __always_inline int is_vector(u8 opcode)
{
    return opcode == RING_READV || opcode == RING_WRITEV || opcode == RING_READV_FIXED || opcode == RING_WRITEV_FIXED;
}

// The file is not resolved yet when a request is taken over; 0 where this kernel does not let us look it up.
static __always_inline u64 find_ring_file(u64 request)
{
#ifdef HAVE_io_kiocb__fd
    u32 descriptor = read_u32(request + io_kiocb__fd);
    if (!(read_u32(request + io_kiocb__flags) & IS_FIXED_FILE))
        return find_file(descriptor);
#ifdef HAVE_io_ring_ctx__nodes
    u64 ring = read_u64(request + io_kiocb__ctx);
    if (descriptor < read_u32(ring + io_ring_ctx__nr)) {
        u64 node = read_u64(read_u64(ring + io_ring_ctx__nodes) + descriptor * 8ULL);
        return node ? read_u64(node + io_rsrc_node__file_ptr) & ~FILE_FLAGS : 0;
    }
#endif
#endif
    return 0;
}

static __always_inline void count_in_batch(u32 op)
{
    struct thread_t *t = get_thread();
    struct mode_t *m = get_mode(op, BY_IO_URING);
    if (FOLLOW(bpf_get_current_task_btf(), task_struct__flags, u32) & PF_IO_THREAD) {
        if (m)
            m->polled += 1;
    } else if (t && t->kind.row && t->kind.kind == IS_ENTER && op < OPS)
        t->batch[op] += 1;
}

int on_ring_submit(struct bpf_raw_tracepoint_args *ctx)
{
    struct config_t *c = get_config();
    u64 request = ctx->args[ARG_io_uring_submit];
    u8 opcode = 0;
    if (!ROW_io_uring_enter || !is_followed(c) || bpf_probe_read_kernel(&opcode, 1, (void *)(request + io_kiocb__opcode)))
        return 0;
    struct flight_key_t key = {.address = to_number(request, 0)};
    struct flight_t fresh = {.mode = BY_IO_URING, .row = ROW_io_uring_enter, .op = get_ring_operation(opcode)};
    u64 file = fresh.op < OPS ? find_ring_file(request) : 0;
    fresh.inode = file ? read_u64(file + file__f_inode) : 0;
    if (fresh.op >= OPS || (file && !is_wanted(fresh.inode, &fresh.key, fresh.op == SYNC)))
        return 0;
    if (fresh.op != SYNC) {
        fresh.offset = read_u64(request + io_rw__ki_pos);
        fresh.length = read_u32(request + io_rw__len);
        if (is_vector(opcode))
            fresh.length = measure_vector(read_u64(request + io_rw__addr), fresh.length);
        if ((s64)fresh.offset < 0 && file)
            fresh.offset = read_u64(file + file__f_pos);
    }
    fresh.is_counted = !!file;
    begin_flight(c, &key, &fresh, bpf_ktime_get_ns());
    count_in_batch(fresh.op);
    if (file)
        count_flight(&fresh);
    return 0;
}

int on_ring_complete(struct bpf_raw_tracepoint_args *ctx)
{
    struct config_t *c = get_config();
    struct flight_key_t key = {.address = to_number(ctx->args[1], 1)};
    struct flight_t *f = c ? get_flight(c, &key) : 0;
    if (!f)
        return 0;
    if (!f->inode) {
        f->inode = read_u64(read_u64(key.address + io_kiocb__file) + file__f_inode);
        f->is_foreign = !is_wanted(f->inode, &f->key, f->op == SYNC);
    }
    if (!f->is_foreign)
        count_once(f);
#if ARGS_io_uring_complete == 3
    s32 result = read_u32(ctx->args[2] + io_uring_cqe__res);
#else
    s32 result = ctx->args[3];
#endif
    end_flight(c, &key, f, result, bpf_ktime_get_ns());
    return 0;
}
#endif
