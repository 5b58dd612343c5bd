// From a bio that reaches a disk up to the one that it was made for: through device mapper, dm-crypt, md and bcache.
//
// What is called when a bio is done (bi_end_io) shows who made it, and its private field leads to the bio above. A
// block of a RAID of level 4 to 6 belongs to what is read or written there, and parity, or what is read to compute it, to
// the first block of its stripe that is. Only in a monitor of disks that something is stacked on (macro STACKED).
#pragma once

#include "memory.bpf.h"

#if STACKED
#define STACK_LEVELS 10
#define STRIPE_BLOCKS 16  // of a stripe, that are looked at

BPF_HASH(uppers, u32, u8, 1024);  // number of a device that is stacked on the followed disks, or of a partition of it

static __always_inline int is_upper(u64 device)
{
    u32 number = device ? LOAD(device, block_device, bd_dev, u32) : 0;
    return uppers.lookup(&number) != 0;
}

#if defined(AT_raid5_end_write_request) && defined(HAVE_stripe_head__dev) && defined(HAVE_r5dev__written)
static __always_inline u64 find_bio_of_stripe(u64 bio, u64 stripe)
{
    // By its vector, which lies in the block, too: the verifier takes the bio for a pointer, which nothing is subtracted from.
    u64 blocks = stripe + stripe_head__dev, own = (read_u64(bio + bio__bi_io_vec) - blocks) / r5dev__END, above = 0;
    u32 count = read_u32(stripe + stripe_head__disks);
#pragma clang loop unroll(disable)
    for (u32 i = 0; i <= STRIPE_BLOCKS && i <= count && !above; i++) {
        u64 block = blocks + (i ? i - 1 : own) * r5dev__END;
        above = read_u64(block + r5dev__written);
        if (!above)
            above = read_u64(block + r5dev__towrite);
        if (!above)
            above = read_u64(block + r5dev__toread);
    }
    return above;
}
#endif

// 0: nothing is above it that we know.
static __always_inline u64 find_bio_above(u64 bio)
{
    // As words: newer kernels take what a pointer to void leads to for memory, and add no two such addresses.
    u64 end_io = LOAD_WORD(bio, bio__bi_end_io), private = LOAD_WORD(bio, bio__bi_private);
#ifdef AT_bio_chain_endio
    if (end_io == AT_bio_chain_endio)  // cut off from a bio that was too large
        return private;
#endif
#if defined(AT_clone_endio) && defined(HAVE_dm_target_io__clone) && defined(HAVE_dm_io__orig_bio)
    if (end_io == AT_clone_endio)
        return read_u64(read_u64(bio - dm_target_io__clone + dm_target_io__io) + dm_io__orig_bio);
#endif
#if defined(AT_crypt_endio) && defined(HAVE_dm_crypt_io__base_bio)
    if (end_io == AT_crypt_endio)
        return read_u64(private + dm_crypt_io__base_bio);
#endif
#if defined(AT_md_end_clone_io) && defined(HAVE_md_io_clone__orig_bio)
    if (end_io == AT_md_end_clone_io)  // since 7.1 its private field is for a reshape
        return read_u64(bio - md_io_clone__bio_clone + md_io_clone__orig_bio);
#endif
#if defined(AT_md_end_io_acct) && defined(HAVE_md_io_acct__orig_bio)
    if (end_io == AT_md_end_io_acct)
        return read_u64(private + md_io_acct__orig_bio);
#endif
#if defined(AT_raid1_end_write_request) && defined(HAVE_r1bio__master_bio)
    if (end_io == AT_raid1_end_write_request || end_io == AT_raid1_end_read_request)
        return read_u64(private + r1bio__master_bio);
#endif
#if defined(AT_raid10_end_write_request) && defined(HAVE_r10bio__master_bio)
    if (end_io == AT_raid10_end_write_request || end_io == AT_raid10_end_read_request)
        return read_u64(private + r10bio__master_bio);
#endif
#if defined(AT_raid5_end_write_request) && defined(HAVE_stripe_head__dev) && defined(HAVE_r5dev__written)
    if (end_io == AT_raid5_align_endio)
#ifdef HAVE_md_io_acct__orig_bio  // from 5.14 to 6.3
        return read_u64(private + md_io_acct__orig_bio);
#else
        return private;
#endif
    if (end_io == AT_raid5_end_write_request || end_io == AT_raid5_end_read_request)
        return find_bio_of_stripe(bio, private);
#endif
#if defined(AT_bch_data_insert_endio) && defined(HAVE_search__orig_bio)
    if (end_io == AT_bch_cache_read_endio || end_io == AT_backing_request_endio)
        return read_u64(private + search__orig_bio);
    if (end_io == AT_bch_data_insert_endio) {
        u64 search = private - search__iop, owner = read_u64(search + search__bio + bio__bi_private);
        // What bcache moves by itself comes here, too, out of another struct: only a search's own bio leads back to it.
        return owner == search || owner == private ? read_u64(search + search__orig_bio) : 0;
    }
#endif
    return 0;
}

static __always_inline u64 find_top(u64 bio)
{
    u64 above = bio;
#pragma clang loop unroll(disable)
    for (int level = 0; level < STACK_LEVELS && above; level++) {
        bio = above;
        above = find_bio_above(bio);
    }
    return bio;
}
#else
#define is_upper(device) 0
#define find_top(bio) (bio)
#endif
