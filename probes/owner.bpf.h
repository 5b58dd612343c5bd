// Whose request it is, asked in the submitter's context: at issue and completion anybody may be running.

// The inode whose cached page a bio carries; 0 for anonymous memory (direct I/O) and pages without a file.
static __always_inline u64 get_inode(u64 bio)
{
#ifdef HAVE_page__compound_head  // 7.2 encodes the head of a folio differently: no attribution by file there
    u64 vectors = read_u64(bio + bio__bi_io_vec);
    if (!vectors)
        return 0;
    // A split bio shares the vector of the bio it was cut from: its own first element is at bi_idx.
    u64 page = read_u64(vectors + read_u32(bio + bio__bi_idx) * (u64)bio_vec__END + bio_vec__bv_page);
    u64 head = page ? read_u64(page + page__compound_head) : 0;
    if (head & 1)
        page = head - 1;
    u64 mapping = page ? read_u64(page + page__mapping) : 0;
    return mapping && !(mapping & 3) ? read_u64(mapping + address_space__host) : 0;
#else
    return 0;
#endif
}

static __always_inline int is_block_device(u64 inode)
{
    u16 mode = 0;
    bpf_probe_read_kernel(&mode, sizeof(mode), (void *)(inode + inode__i_mode));
    return (mode & 0170000) == 0060000;
}

// Journal and metadata belong to no process: jbd2's thread, XFS' log and buffers, the device's own page cache.
static __always_inline u8 get_kernel_owner(u64 inode, int is_kernel)
{
    char name[16] = {};
    bpf_get_current_comm(name, sizeof(name));
    int is_jbd2 = name[0] == 'j' && name[1] == 'b' && name[2] == 'd' && name[3] == '2' && name[4] == '/';
    if (inode ? is_block_device(inode) : is_kernel && is_jbd2)
        return JOURNAL;
    return is_kernel ? UNKNOWN : FOREIGN;
}

// Asked in the submitter's context; at issue and completion anybody may be running.
static __always_inline u8 get_owner(struct config_t *c, u64 bio, u32 flags)
{
    if (bpf_get_current_cgroup_id() == c->cgroup)
        return OWN;
    int is_kernel = !!(read_u32(bpf_get_current_task() + task_struct__flags) & PF_KTHREAD);
    int is_write = flags & 1;
    if (flags & FLAG(META) && (is_kernel || is_write))
        return JOURNAL;
    u64 inode = is_write ? get_inode(bio) : 0;
    u64 *number = inode ? dirtied.lookup(&inode) : 0;
    if (number && *number == read_u64(inode + inode__i_ino))
        return INODE;
    return get_kernel_owner(inode, is_kernel);
}

// What was asked of the device: the flush machinery clears these flags before it issues.
static __always_inline void count_barriers(struct config_t *c, u32 flags, u32 bytes, u8 owner)
{
    u32 op = get_operation(flags);
    if (!(flags & (FLAG(FUA) | FLAG(PREFLUSH))) || op >= OPS || !is_counted(owner))
        return;
    struct totals_t *t = get_totals(c, bytes ? op : OP_FLUSH);
    if (!t)
        return;
    t->fua += !!(flags & FLAG(FUA));
    t->preflush += !!(flags & FLAG(PREFLUSH));
}

#ifdef HAVE_block_io_start  // since 6.5
int on_start(struct bpf_raw_tracepoint_args *ctx)
{
    u64 request[request__START_END / 8];
    struct config_t *c = get_config();
    if (!c || bpf_probe_read_kernel(request, sizeof(request), (void *)ctx->args[ARG_block_io_start]) || !is_ours(c, request))
        return 0;
    u32 flags = GET(request, request__cmd_flags, u32);
    struct slot_t *slot = get_slot(request, get_queue(request), OP_READ);
    u8 owner = get_owner(c, GET(request, request__bio, u64), flags);
    trace_forgotten(c, slot, get_queue(request));
    if (slot && slot->state != FREE)
        forget(c, slot, get_queue(request));
    if (slot)
        slot->owner = owner;
    trace_start(slot, request);
    count_barriers(c, flags, GET(request, request__data_len, u32), owner);
    return 0;
}
#else  // the request is not known yet: remember the bio, and find it as the request's first one at issue
static __always_inline int remember_bio(u64 bio)
{
    struct config_t *c = get_config();
    u64 disk = read_u64(read_u64(bio + bio__bi_bdev) + block_device__bd_disk);
    if (!c || !is_followed(c, read_u64(disk + gendisk__queue), disk))
        return 0;
    u32 flags = read_u32(bio + bio__bi_opf);
    u8 owner = get_owner(c, bio, flags);
    bios.update(&bio, &owner);
    count_barriers(c, flags, read_u32(bio + bio__bi_size), owner);
    return 0;
}

int on_getrq(struct bpf_raw_tracepoint_args *ctx) { return remember_bio(ctx->args[ARG_block_getrq]); }
int on_frontmerge(struct bpf_raw_tracepoint_args *ctx) { return remember_bio(ctx->args[ARG_block_bio_frontmerge]); }
#endif

static __always_inline u8 take_owner(struct slot_t *slot, u64 *request, u32 op)
{
    if (op == OP_FLUSH)
        return DEVICE_FLUSH;
#ifndef HAVE_block_io_start
    u64 bio = GET(request, request__bio, u64);
    u8 *owner = bios.lookup(&bio);
    slot->owner = owner ? *owner : UNSEEN;
    bios.delete(&bio);
#endif
    return slot->owner < OWNERS ? slot->owner : UNSEEN;
}

int on_dirty(struct bpf_raw_tracepoint_args *ctx)
{
    struct config_t *c = get_config();
    if (!c || !c->cgroup || bpf_get_current_cgroup_id() != c->cgroup)
        return 0;
    u64 inode = read_u64(ctx->args[ARG_writeback_dirty + 1] + address_space__host);
    u64 number = read_u64(inode + inode__i_ino), *known = dirtied.lookup(&inode);
    if (inode && (!known || *known != number))
        dirtied.update(&inode, &number);
    return 0;
}
