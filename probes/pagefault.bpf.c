// Page faults of the followed processes on mapped files: what they bring in and dirty, and what is written back of it.
//
// A fault counts when the page was not mapped in passing with its neighbours (fault-around), be it in the page cache or
// not: a read of a cached file by mapping mostly shows no fault at all. Brought in are pages that a fault added to the
// page cache, with those read ahead. Dirtied are clean pages that a store made dirty: a second store into a dirty page
// is not seen. Written back is what any process or thread sends to the device of such a file, however it was dirtied.
// Anonymous and shared memory have no file and do not count. Raw tracepoints only, so no latency of a fault.
//
// The monitor writes what comes before this text: offsets of members of kernel structs, ARG_<tracepoint>, ONE_DEVICE.

#define OPEN_STREAMS 16
#define REGION_SHIFT 20
#define PAGE_BYTES (1ULL << PAGE_SHIFT)
#define REQ_OP_MASK 0xff
#define REQ_OP_WRITE 1

enum { LOST_FILE, LOST_REGION, LOSSES };

#include "fault.bpf.h"
#include "file_of.bpf.h"
#include "folio.bpf.h"
#include "followed.bpf.h"
#include "pattern.bpf.h"

struct config_t { u64 is_following; };
// `length` counts faults, 0 is free; see lengthen().
struct stream_t {
    u64 start, end;
    u32 at, length;
};
struct sums_t { u64 faults, brought_in, dirtied, written_back; };  // faults, then bytes
struct file_t {
    struct about_t about;
    struct sums_t sums;
    struct pattern_t pattern;
    struct stream_t open[OPEN_STREAMS];
};
struct region_t {
    struct file_key_t file;
    u64 number;
};

BPF_ARRAY(config, struct config_t, 1);
BPF_PERCPU_ARRAY(losses, u64, LOSSES);
BPF_PERCPU_ARRAY(empty, struct file_t, 1);  // never written: what a new file begins with
BPF_HASH(files, struct file_key_t, struct file_t, 4096);
BPF_HASH(regions, struct region_t, struct sums_t, 65536);
BPF_HASH(devices, u32, u8, 256);

static __always_inline void lose(u32 reason)
{
    u64 *count = losses.lookup(&reason);
    if (count)
        *count += 1;
}

static __always_inline int is_followed(void)
{
    int zero = 0;
    struct config_t *c = config.lookup(&zero);
    return c && c->is_following && is_of_followed();
}

static __always_inline struct file_t *get_file(struct file_key_t *key, u64 inode)
{
    int zero = 0;
    struct file_t *file = files.lookup(key), *fresh = empty.lookup(&zero);
    if (file || !fresh)
        return file;
    files.insert(key, fresh);
    file = files.lookup(key);
    if (file)
        describe_file(inode, &file->about);
    else
        lose(LOST_FILE);
    return file;
}

// The file of a mapping, unless it is none that we count.
static __always_inline struct file_t *find_mapped(u64 mapping, struct file_key_t *key)
{
    u64 inode = read_u64(mapping + address_space__host);
    if (identify(inode, key) != IS_FILE || (ONE_DEVICE && !devices.lookup(&key->device)))
        return 0;
    return get_file(key, inode);
}

static __always_inline struct sums_t *get_region(struct file_key_t *key, u64 offset)
{
    struct sums_t none = {}, *sums;
    struct region_t region = {.file = *key, .number = offset >> REGION_SHIFT};
    sums = regions.lookup_or_try_init(&region, &none);
    if (!sums)
        lose(LOST_REGION);
    return sums;
}

#define COUNT(file, key, offset, what, amount) \
    ({ \
        struct sums_t *region = get_region(key, offset); \
        __sync_fetch_and_add(&(file)->sums.what, amount); \
        if (region) \
            __sync_fetch_and_add(&region->what, amount); \
    })

// A fault goes on with a stream when it lies within what the stream's last fault brought in, or right behind it: the
// kernel reads ahead, so that pages between two faults of one scan show no fault. Returns the stream.
static __always_inline u32 find_stream(struct file_t *file, u32 now, u64 start)
{
    u32 oldest = 0, age = 0;
    for (u32 i = 0; i < OPEN_STREAMS; i++) {
        struct stream_t *s = &file->open[i];
        u32 since = s->length ? now - s->at : ~0u;
        if (s->length && since <= STREAM_AGE && start > s->start && start <= s->end)
            return i;
        if (since > age) {
            age = since;
            oldest = i;
        }
    }
    file->open[oldest & (OPEN_STREAMS - 1)].length = 0;
    return oldest;
}

static __always_inline u32 judge_fault(struct file_t *file, u64 start)
{
    u32 now = __sync_fetch_and_add(&file->pattern.judged, 1);
    u32 found = find_stream(file, now, start) & (OPEN_STREAMS - 1);
    struct stream_t *s = &file->open[found];
    u64 end = start + PAGE_BYTES;
    u8 length = lengthen(s->length, now - s->at);
    if (length == 1 || end > s->end)
        s->end = end;
    s->start = start;
    s->at = now;
    s->length = length;
    count_pattern(&file->pattern, judge_length(length), follow_order(&file->pattern, now, start, PAGE_BYTES, 0));
    return found;
}

#ifdef HAVE_mm_filemap_fault
int on_fault(struct bpf_raw_tracepoint_args *ctx)
{
    struct file_key_t key = {};
    u64 mapping = ctx->args[ARG_mm_filemap_fault], offset = ctx->args[ARG_mm_filemap_fault + 1] << PAGE_SHIFT;
    struct file_t *file = is_followed() ? find_mapped(mapping, &key) : 0;
    if (!file || !begin_fault(mapping, offset))
        return 0;
    struct fault_t *fault = get_fault(mapping);
    u32 stream = judge_fault(file, offset);
    if (fault)
        fault->stream = stream;
    COUNT(file, &key, offset, faults, 1);
    return 0;
}
#endif

#ifdef HAVE_mm_filemap_add_to_page_cache
int on_add(struct bpf_raw_tracepoint_args *ctx)
{
    struct file_key_t key = {};
    u64 folio = ctx->args[ARG_mm_filemap_add_to_page_cache], mapping = read_u64(folio + folio__mapping);
    struct fault_t *fault = is_followed() ? get_fault(mapping) : 0;
    struct file_t *file = fault ? find_mapped(mapping, &key) : 0;
    if (!file)
        return 0;
    u64 offset = read_u64(folio + folio__index) << PAGE_SHIFT, bytes = count_pages(folio) << PAGE_SHIFT;
    struct stream_t *s = &file->open[fault->stream & (OPEN_STREAMS - 1)];
    if (offset <= s->end && offset + bytes > s->end)
        s->end = offset + bytes;
    COUNT(file, &key, offset, brought_in, bytes);
    return 0;
}
#endif

#ifdef HAVE_writeback_dirty_folio
int on_dirty(struct bpf_raw_tracepoint_args *ctx)
{
    struct file_key_t key = {};
    u64 folio = ctx->args[ARG_writeback_dirty_folio], mapping = ctx->args[ARG_writeback_dirty_folio + 1];
    if (!is_followed() || (!get_fault(mapping) && get_call() >= 0))
        return 0;
    struct file_t *file = find_mapped(mapping, &key);
    if (file)
        COUNT(file, &key, read_u64(folio + folio__index) << PAGE_SHIFT, dirtied, count_pages(folio) << PAGE_SHIFT);
    return 0;
}
#endif

#ifdef HAVE_block_bio_queue
// A loop device writes the pages of the file systems on it once more: only the file system's own device counts.
int on_bio(struct bpf_raw_tracepoint_args *ctx)
{
    u32 zero = 0;
    struct config_t *c = config.lookup(&zero);
    if (!c || !c->is_following)
        return 0;
    struct file_key_t key = {};
    u64 bio = ctx->args[ARG_block_bio_queue], in_page = 0, page = find_first_page(bio, &in_page);
    if (!page || (read_u32(bio + bio__bi_opf) & REQ_OP_MASK) != REQ_OP_WRITE)
        return 0;
    u64 folio = find_folio(page), mapping = read_u64(folio + folio__mapping);
    u64 inode = mapping && !(mapping & 3) ? read_u64(mapping + address_space__host) : 0;
    if (identify(inode, &key) != IS_FILE)
        return 0;
    struct file_t *file = files.lookup(&key);
    if (!file || (key.inode && read_u64(read_u64(inode + inode__i_sb) + super_block__s_bdev) != read_u64(bio + bio__bi_bdev)))
        return 0;
    u64 offset = (read_u64(folio + folio__index) + (page - folio) / page__END) << PAGE_SHIFT;
    COUNT(file, &key, offset, written_back, (read_u32(bio + bio__bi_size) + PAGE_BYTES - 1) & -PAGE_BYTES);
    return 0;
}
#endif
