// Which file a request belongs to, asked when it is submitted, from its first bio; and what is counted of each file.
//
// The page cache tells by the page's mapping, direct I/O through iomap (ext4, XFS, f2fs) by the call that it is part of.
// What is no file's goes to one of three pseudo files: the file system's journal, its metadata, or the device itself
// when no file system holds it. What cannot be told (direct I/O of other file systems) is counted by address.

#define FILE_BITS 13  // of a file's place in the table of those seen last
#define NAME_BYTES 64
#define STREAM_BITS 10  // open streams per direction that sequentiality is judged on
#define GOLDEN 0x9E3779B97F4A7C15ULL
#define STREAMS (1 << STREAM_BITS)
#define PLACE(hash) ((hash) >> (64 - STREAM_BITS))
#define MARK(hash) (u16)((hash) >> (48 - STREAM_BITS))

enum { NO_FILE, JOURNAL_FILE, METADATA_FILE, DEVICE_FILE, FIRST_FILE };

struct origin_t { u64 inode; u32 pseudo, is_cached; };  // an inode, or a pseudo file; is_cached: by a page of the cache
struct identity_t { u64 super_block, inode; u32 generation, unused; };  // the generation tells a reused inode number
struct access_t { u64 bytes, first, end; struct pattern_t pattern; };  // pattern.judged is the number of requests
struct file_t { struct identity_t identity; u32 device; char name[NAME_BYTES]; struct access_t access[2]; };
struct address_t { u64 sector; u32 op, unused; };
struct extent_t { u64 requests, bytes; };

struct stream_t { u64 end; u32 at, file_at; u16 file; u8 length, file_length; };  // requests: 1, 2, 3, then 4 for more
// `mark`: more bits of the hash of `end`, close together. At random offsets they tell that no stream goes on here, and stay
// in the processor's cache, where the streams themselves do not.
struct streams_t { u32 issued[2]; u16 mark[2][STREAMS]; struct stream_t open[2][STREAMS]; };
struct judged_t { u32 on_device, in_file; };  // requests that have turned out to be sequential

BPF_ARRAY(files, struct file_t, MAX_FILES);  // the first one: all requests whose file is not known
BPF_ARRAY(streams, struct streams_t, 1);
BPF_ARRAY(files_tried, u64, 1);  // places in it that were asked for, also when there was none left
BPF_ARRAY(seen, u32, 1 << FILE_BITS);
BPF_HASH(numbers, struct identity_t, u32, MAX_FILES);
BPF_HASH(addresses, struct address_t, struct extent_t, MAX_ADDRESSES);

static __always_inline int is_jbd2(void)
{
    char name[16] = {};
    bpf_get_current_comm(name, sizeof(name));
    return name[0] == 'j' && name[1] == 'b' && name[2] == 'd' && name[3] == '2' && name[4] == '/';
}

static __always_inline u64 get_direct_inode(u64 dio)
{
#ifdef HAVE_iomap_dio__iocb
    u64 iocb = LOAD(CAST(dio, iomap_dio), iomap_dio__iocb, u64);
    return LOAD(LOAD(iocb, kiocb__ki_filp, u64), file__f_inode, u64);
#else
    return 0;
#endif
}

// The inode whose cached page a bio carries; 0 for anonymous memory and pages without a file.
static __always_inline u64 get_cached_inode(u64 *bio)
{
#ifdef HAVE_page__compound_head  // 7.2 encodes the head of a folio differently: only direct I/O has files there
    u64 vectors = GET(bio, bio__bi_io_vec, u64);
    if (!vectors)
        return 0;
    // A split bio shares the vector of the bio it was cut from: its own first element is at bi_idx.
    u64 vector = CAST(vectors + GET(bio, bio__bi_idx, u32) * (u64)bio_vec__END, bio_vec);
    READ(page, page__HEAD, WORDS(LOAD(vector, bio_vec__bv_page, u64)));
    u64 head = GET(page, page__compound_head, u64), mapping = GET(page, page__mapping, u64);
    if (head & 1)
        mapping = LOAD(WORDS(head - 1), page__mapping, u64);
    return mapping && !(mapping & 3) ? LOAD(CAST(mapping, address_space), address_space__host, u64) : 0;
#else
    return 0;
#endif
}

static __always_inline u32 get_type(u64 inode)
{
    return inode ? LOAD(inode, inode__i_mode, u16) & 0170000 : 0;
}

// Who is told when the bio is done tells what it is for.
static __always_inline u32 get_purpose(u64 *bio, u64 *private)
{
    u64 end_io = GET(bio, bio__bi_end_io, u64);
    *private = GET(bio, bio__bi_private, u64);
#ifdef AT_bio_chain_endio
    if (end_io == AT_bio_chain_endio) {  // cut off from a bio that was too large
        u64 whole = CAST(*private, bio);
        end_io = LOAD(whole, bio__bi_end_io, u64);
        *private = LOAD(whole, bio__bi_private, u64);
    }
#endif
#if defined(AT_iomap_dio_bio_end_io) && defined(HAVE_iomap_dio__iocb)
    if (end_io == AT_iomap_dio_bio_end_io)
        return FIRST_FILE;
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

static __always_inline void find_origin(u64 address, u32 flags, struct origin_t *origin)
{
    READ(bio, bio__HEAD, address);
    u64 private;
    if (!LOAD(GET(bio, bio__bi_bdev, u64), block_device__bd_holder, u64)) {
        origin->pseudo = DEVICE_FILE;
        return;
    }
    origin->pseudo = get_purpose(bio, &private);
    if (origin->pseudo == FIRST_FILE)
        origin->inode = get_direct_inode(private);
    if (origin->pseudo)
        return;
    origin->inode = get_cached_inode(bio);
    origin->is_cached = origin->inode != 0;
    if (get_type(origin->inode) == 0100000)
        return;
    if (origin->inode || flags & FLAG(META))
        origin->pseudo = METADATA_FILE;
    if ((origin->pseudo || flags & 1) && is_jbd2())
        origin->pseudo = JOURNAL_FILE;
}

static __always_inline void copy_name(u64 inode, char *name)
{
    u64 alias = LOAD(inode, inode__first, u64);  // of its dentries; a deleted file that is still open has its own, too
    if (alias)
        bpf_probe_read_kernel_str(name, NAME_BYTES, (void *)LOAD(CAST(alias - dentry__d_alias, dentry), dentry__name, u64));
}

static __always_inline u32 add_file(u64 inode, struct identity_t *identity, u32 *place)
{
    int zero = 0;
    u64 *tried = files_tried.lookup(&zero);
    u32 *known = numbers.lookup(identity);
    if (known)
        *place = *known;
    if (known || !tried)
        return known ? *known : NO_FILE;
    u32 number = __sync_fetch_and_add(tried, 1) + FIRST_FILE;
    struct file_t *file = files.lookup(&number);
    if (!file)
        return NO_FILE;
    file->identity = *identity;
    file->device = LOAD(LOAD(inode, inode__i_sb, u64), super_block__s_dev, u32);
    copy_name(inode, file->name);
    if (numbers.insert(identity, &number))
        return NO_FILE;  // at the same moment on another processor: its next request will find it
    *place = number;
    return number;
}

static __always_inline u32 find_file(struct origin_t *origin)
{
    if (!origin->inode || (origin->pseudo && origin->pseudo != FIRST_FILE))
        return origin->pseudo;
    READ(inode, inode__HEAD, origin->inode);
    struct identity_t identity = {
        .super_block = GET(inode, inode__i_sb, u64),
        .inode = GET(inode, inode__i_ino, u64),
        .generation = LOAD(origin->inode, inode__i_generation, u32),
    };
    u32 place = (identity.inode ^ (u64)identity.generation << 20) * GOLDEN >> (64 - FILE_BITS);
    u32 *number = seen.lookup(&place);
    struct file_t *file = number ? files.lookup(number) : 0;
    if (!file)
        return NO_FILE;
    if (file->identity.inode == identity.inode && file->identity.super_block == identity.super_block &&
        file->identity.generation == identity.generation)
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

static __always_inline u32 lengthen(u32 length)
{
    return length < 3 ? length + 1 : 4;
}

static __always_inline u32 judge_length(u32 length)
{
    return length == 3 ? 3 : length > 3;
}

// Follows a stream on the device and, as far as it is that of one file, in the file: both at one place of one table.
static __always_inline struct judged_t follow_stream(u32 op, u32 number, u32 file_now, u64 sector, u64 end)
{
    int zero = 0;
    u32 direction = op & 1, length = 1, file_length = 1;
    u64 from = sector * GOLDEN, to = end * GOLDEN;
    struct streams_t *s = streams.lookup(&zero);
    struct judged_t judged = {};
    if (!s)
        return judged;
    u32 now = s->issued[direction]++;
    if (s->mark[direction][PLACE(from)] == MARK(from)) {
        struct stream_t *old = &s->open[direction][PLACE(from)];
        if (old->length && old->end == sector) {
            if (now - old->at <= STREAM_AGE)
                length = lengthen(old->length);
            if (old->file == number && file_now - old->file_at <= STREAM_AGE)
                file_length = lengthen(old->file_length);
            old->length = 0;
        }
    }
    s->mark[direction][PLACE(to)] = MARK(to);
    s->open[direction][PLACE(to)] = (struct stream_t){
        .end = end, .at = now, .file_at = file_now, .file = number, .length = length, .file_length = file_length};
    judged.on_device = judge_length(length);
    judged.in_file = judge_length(file_length);
    return judged;
}

static __always_inline u32 count_access(struct access_t *access, u32 op, u32 number, u64 sector, u32 bytes)
{
    struct pattern_t *pattern = &access->pattern;
    u64 end = sector + (bytes >> 9);
    u32 now = __sync_fetch_and_add(&pattern->judged, 1);
    __sync_fetch_and_add(&access->bytes, bytes);
    if (sector < access->first || !access->end)
        access->first = sector;
    if (end > access->end)
        access->end = end;
    u32 strided = follow_stride(pattern, now, sector, end - sector);
    // Last, as an atomic addition would wait for the stores to streams, which are seldom in the cache.
    struct judged_t judged = follow_stream(op, number, now, sector, end);
    count_pattern(pattern, judged.in_file, strided);
    return judged.on_device;
}

// Returns how many requests have turned out to be sequential, on the whole device, by this one.
static __always_inline u32 count_file(struct config_t *c, struct totals_t *t, u32 number, u32 op, u64 sector, u32 bytes)
{
    struct file_t *file = op <= OP_WRITE && is_measured(c) ? files.lookup(&number) : 0;
    if (!file)
        return 0;
    if (number == NO_FILE)
        count_address(t, sector, op, bytes);
    return count_access(&file->access[op & 1], op, number, sector, bytes);
}
