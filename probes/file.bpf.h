// Which file a request belongs to, asked when it is submitted, from its first bio; and what is counted of each file.
//
// The page cache tells by the page's mapping, direct I/O through iomap (ext4, XFS, f2fs) by the call that it is part of.
// What is no file's goes to one of three pseudo files: the file system's journal, its metadata, or the device itself
// when no file system holds it. What cannot be determined (direct I/O of other file systems) is counted by address.
#pragma once

#include "folio.bpf.h"
#include "request.bpf.h"
#include "stream.bpf.h"

#define FILE_BITS 13  // of a file's slot in the table of those seen last
#define NAME_BYTES 64
#define TMPFS_MAGIC 0x01021994

enum { NO_FILE, JOURNAL_FILE, METADATA_FILE, DEVICE_FILE, FIRST_FILE };

// Whose a request is: an inode, or a pseudo file; is_cached: told by a page of the cache.
struct origin_t {
    u64 inode;
    u32 pseudo, is_cached;
};
// The generation tells a reused inode number.
struct identity_t {
    u64 super_block, inode;
    u32 generation, unused;
};
// Requests of one direction; pattern.judged is their number.
struct access_t {
    u64 bytes, first, end;
    struct pattern_t pattern;
};
struct file_t {
    struct identity_t identity;
    u32 device;
    char name[NAME_BYTES];
    struct access_t access[2];
};
struct address_t {
    u64 sector;
    u32 op, unused;
};
struct extent_t { u64 requests, bytes; };

BPF_ARRAY(files, struct file_t, MAX_FILES);  // the first one: all requests whose file is not known
BPF_ARRAY(files_tried, u64, 1);  // numbers of files that were asked for, also when there was none left
BPF_ARRAY(seen, u32, 1 << FILE_BITS);
BPF_HASH(numbers, struct identity_t, u32, MAX_FILES);
BPF_HASH(addresses, struct address_t, struct extent_t, MAX_ADDRESSES);

static __always_inline int is_jbd2(u64 task)
{
    return (FOLLOW(task, task_struct__comm, u64) & 0xffffffffffULL) == 0x2f3264626aULL;  // "jbd2/"
}

// The call (kiocb) that a bio of direct I/O is part of; 0: it is of no such call. A read of one block has a struct of its own
// since 7.3, of which its bio is a part: whom it tells differs, what it was allocated from does not.
static __always_inline u64 find_call(u64 bio, u64 end_io, u64 private)
{
#if defined(AT_iomap_dio_simple_pool) && defined(HAVE_iomap_dio_simple__bio)
    if (LOAD_WORD(bio, bio__bi_pool) == AT_iomap_dio_simple_pool)
        return LOAD_WORD(bio - iomap_dio_simple__bio, iomap_dio_simple__iocb);
#endif
#if defined(AT_iomap_dio_bio_end_io) && defined(HAVE_iomap_dio__iocb)
    if (end_io == AT_iomap_dio_bio_end_io)
        return LOAD(private, iomap_dio, iocb, u64);
#endif
    return 0;
}

static __always_inline u64 get_direct_inode(u64 call)
{
    return LOAD(LOAD(call, kiocb, ki_filp, u64), file, f_inode, u64);
}

// The inode whose cached page a bio carries; 0 for anonymous memory and pages without a file.
static __always_inline u64 get_cached_inode(u64 *bio)
{
    u64 vectors = GET(bio, bio__bi_io_vec, u64);
    if (!vectors)
        return 0;
    // A split bio shares the vector of the bio it was cut from: its own first element is at bi_idx. A vector has less than
    // 2^16 elements; the verifier of newer kernels wants to see a bound.
    u64 index = GET(bio, bio__bi_idx, u32) & 0xffff;
    u64 page = LOAD_WORD(vectors + index * bio_vec__END, bio_vec__bv_page);
    READ(head, page__HEAD, WORDS(page));
    u64 mapping = GET(head, page__mapping, u64), folio = follow_head(head, page);
    if (folio != page)
        mapping = LOAD_WORD(folio, page__mapping);
    return mapping && !(mapping & 3) ? LOAD(mapping, address_space, host, u64) : 0;
}

static __always_inline u32 get_type(u64 inode)
{
    return inode ? LOAD(inode, inode, i_mode, u16) & S_IFMT : 0;
}

// The inode that a bio of btrfs carries data of; 0 for bios of others. Compressed data lie in pages that no file has, and
// a copy for another mirror knows the bio that it is a copy of.
static __always_inline u64 get_btrfs_inode(u64 address, u64 end_io, u64 private)
{
#if defined(AT_btrfs_simple_end_io) && defined(HAVE_btrfs_bio__inode)
#if defined(AT_btrfs_clone_write_end_io) && defined(HAVE_btrfs_io_stripe__bioc)
    if (end_io == AT_btrfs_clone_write_end_io) {
        address = LOAD_WORD(LOAD_WORD(private, btrfs_io_stripe__bioc), btrfs_io_context__orig_bio);
        end_io = AT_btrfs_simple_end_io;
    }
#endif
#ifdef AT_btrfs_orig_write_end_io
    if (end_io == AT_btrfs_orig_write_end_io)
        end_io = AT_btrfs_simple_end_io;
#endif
    u64 inode = end_io == AT_btrfs_simple_end_io ? LOAD_WORD(address - btrfs_bio__bio, btrfs_bio__inode) : 0;
    return inode ? inode + btrfs_inode__vfs_inode : 0;
#else
    return 0;
#endif
}

// Who is told when the bio is done tells what it is for.
static __always_inline u32 get_purpose(u64 address, u64 *bio, u64 *private, u64 *call)
{
    u64 end_io = GET(bio, bio__bi_end_io, u64);
    *private = GET(bio, bio__bi_private, u64);
#ifdef AT_bio_chain_endio
    if (end_io == AT_bio_chain_endio) {  // cut off from a bio that was too large
        address = *private;
        end_io = LOAD(address, bio, bi_end_io, u64);
        *private = LOAD(address, bio, bi_private, u64);
    }
#endif
    *call = find_call(address, end_io, *private);
    if (*call)
        return FIRST_FILE;
#if defined(HAVE_buffer_head__b_end_io) && defined(AT_end_bio_bh_io_sync) && defined(AT_journal_end_buffer_io_sync)
    // Of ext4: with data=journal the journal writes pages of files, which then say nothing about where they go.
    if (end_io == AT_end_bio_bh_io_sync && LOAD(*private, buffer_head, b_end_io, u64) == AT_journal_end_buffer_io_sync)
        return JOURNAL_FILE;
#endif
#ifdef AT_xlog_bio_end_io
    if (end_io == AT_xlog_bio_end_io)
        return JOURNAL_FILE;
#endif
#ifdef AT_xfs_buf_bio_end_io
    if (end_io == AT_xfs_buf_bio_end_io)
        return METADATA_FILE;
#endif
    return NO_FILE;
}

static __always_inline void find_origin(u64 address, int has_device, u32 flags, u64 task, int is_kernel, struct origin_t *origin)
{
    READ(bio, bio__HEAD, CAST(address, bio));
    u64 private, call;
    if (has_device && !LOAD(GET(bio, bio__bi_bdev, u64), block_device, bd_holder, u64)) {
        origin->pseudo = DEVICE_FILE;
        return;
    }
    origin->pseudo = get_purpose(address, bio, &private, &call);
    if (origin->pseudo == FIRST_FILE)
        origin->inode = get_direct_inode(call);
    if (origin->pseudo)
        return;
    u64 cached = get_cached_inode(bio), named = get_btrfs_inode(address, GET(bio, bio__bi_end_io, u64), private);
    origin->inode = named ? named : cached;
    origin->is_cached = cached ? cached == origin->inode : named && is_kernel;  // compressed; direct I/O is a process's
    if (get_type(origin->inode) == S_IFREG && !(flags & FLAG(META)))  // no file's data is, whatever its pages belong to
        return;
    if (origin->inode || flags & FLAG(META))
        origin->pseudo = METADATA_FILE;
    if ((origin->pseudo || flags & 1) && is_jbd2(task))
        origin->pseudo = JOURNAL_FILE;
}

static __always_inline void copy_name(u64 inode, char *name)
{
#ifdef HAVE_dentry__d_alias
    u64 alias = LOAD(inode, inode, first, u64);  // of its dentries; a deleted file that is still open has its own, too
    if (alias)
        bpf_probe_read_kernel_str(name, NAME_BYTES, (void *)LOAD(alias - dentry__d_alias, dentry, name, u64));
#endif
}

static __always_inline u32 add_file(u64 inode, struct identity_t *identity, u32 *slot)
{
    int zero = 0;
    u64 *tried = files_tried.lookup(&zero);
    u32 *known = numbers.lookup(identity);
    if (known)
        *slot = *known;
    if (known || !tried)
        return known ? *known : NO_FILE;
    if (LOAD(identity->super_block, super_block, s_magic, u64) == TMPFS_MAGIC) {  // direct I/O of memory that is shared
        u32 nobody = NO_FILE;
        numbers.insert(identity, &nobody);
        return NO_FILE;
    }
    u32 number = __sync_fetch_and_add(tried, 1) + FIRST_FILE;
    struct file_t *file = files.lookup(&number);
    if (!file)
        return NO_FILE;
    file->identity = *identity;
    file->device = LOAD(LOAD(inode, inode, i_sb, u64), super_block, s_dev, u32);
    copy_name(inode, file->name);
    if (numbers.insert(identity, &number))
        return NO_FILE;  // at the same moment on another processor: its next request will find it
    *slot = number;
    return number;
}

static __always_inline u32 find_file(struct origin_t *origin)
{
    if (!origin->inode || (origin->pseudo && origin->pseudo != FIRST_FILE))
        return origin->pseudo;
    READ(inode, inode__HEAD, CAST(origin->inode, inode));
    struct identity_t identity = {
        .super_block = GET(inode, inode__i_sb, u64),
        .inode = GET(inode, inode__i_ino, u64),
        .generation = LOAD(origin->inode, inode, i_generation, u32),
    };
    u32 slot = (identity.inode ^ (u64)identity.generation << 20) * GOLDEN >> (64 - FILE_BITS);
    u32 *number = seen.lookup(&slot);
    struct file_t *file = number ? files.lookup(number) : 0;
    if (!file)
        return NO_FILE;
    if (file->identity.inode == identity.inode && file->identity.super_block == identity.super_block
        && file->identity.generation == identity.generation)
        return *number;
    return add_file(origin->inode, &identity, number);
}

static __always_inline void count_address(struct totals_t *t, u64 sector, u32 op, u32 bytes)
{
    struct address_t key = {.sector = sector, .op = op};
    struct extent_t *known = addresses.lookup(&key), fresh = {};
    if (!known) {
        addresses.insert(&key, &fresh);
        known = addresses.lookup(&key);
    }
    if (!known) {
        t->unfiled += 1;
        return;
    }
    __sync_fetch_and_add(&known->requests, 1);
    __sync_fetch_and_add(&known->bytes, bytes);
}

// Tells of a request whether it goes on with a stream of the device, one of its file, or where its file ends.
static __always_inline void count_access(struct totals_t *t, struct access_t *access, u32 op, u32 number, u64 sector, u32 bytes)
{
    struct pattern_t *pattern = &access->pattern;
    u64 end = sector + (bytes >> 9);
    u32 now = __sync_fetch_and_add(&pattern->judged, 1);
    __sync_fetch_and_add(&access->bytes, bytes);
    if (sector < access->first || !access->end)
        access->first = sector;
    if (end > access->end)
        access->end = end;
    int is_log = op == OP_WRITE && number >= FIRST_FILE;  // what belongs to no file has no end
    struct order_t order = follow_order(pattern, now, sector, end - sector, is_log ? TAIL_BYTES >> 9 : 0);
    FORGET(order.strided, sector);
    FORGET(order.appended, sector);
    // Last, as an atomic addition would wait for the stores to streams, which are seldom in the cache.
    struct judged_t judged = follow_stream(op, 0, number, now, sector, end);
    FORGET(judged.among_all, sector);
    FORGET(judged.in_file, sector);
    count_pattern(pattern, judged.in_file, order);
    t->sequential += judged.among_all;
    t->sequential_bytes += (u64)judged.among_all * bytes;  // the first ones of a stream are seldom of another size
    t->appended += order.appended;
}

static __always_inline void count_file(struct config_t *c, struct totals_t *t, u32 number, u32 op, u64 sector, u32 bytes)
{
    struct file_t *file = op <= OP_WRITE && is_measured(c) ? files.lookup(&number) : 0;
    if (!file)
        return;
    if (number == NO_FILE)
        count_address(t, sector, op, bytes);
    u64 direction = op;
    asm volatile("" : "+r"(direction));  // keeps the bound before the verifier's eyes
    count_access(t, &file->access[direction & 1], op, number, sector, bytes);
}
