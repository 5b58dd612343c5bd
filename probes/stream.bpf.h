// Streams of requests: what makes them sequential.
//
// A request is sequential when it is one of three or more that follow on each other in one of the file's open streams:
// in a random workload pairs happen by chance, the more often the more ends are remembered. All files share the table
// of open streams; one that is displaced there begins anew, which changes no count unless it ends within three requests.

#define STREAM_BITS 14
#define GOLDEN 0x9E3779B97F4A7C15ULL

struct stream_t { u64 file, end; u32 at, length; };  // length in requests: 1, 2, 3, then 4 for more

BPF_ARRAY(streams, struct stream_t, 1 << STREAM_BITS);

static __always_inline struct stream_t *get_stream(u64 file, u64 offset)
{
    u32 slot = (file ^ offset) * GOLDEN >> (64 - STREAM_BITS);
    return streams.lookup(&slot);
}

// Returns how many requests have turned out to be sequential by this one.
static __always_inline u32 follow_stream(u64 file, u32 now, u64 start, u64 end)
{
    struct stream_t *old = get_stream(file, start), *new = get_stream(file, end);
    u32 length = 1;
    if (!old || !new)
        return 0;
    if (old->length && old->file == file && old->end == start && now - old->at <= STREAM_AGE) {
        length = old->length < 3 ? old->length + 1 : 4;
        old->length = 0;
    }
    new->file = file;
    new->end = end;
    new->at = now;
    new->length = length;
    return length == 3 ? 3 : length > 3;
}

static __always_inline void judge(struct pattern_t *p, u64 file, u64 start, u64 length)
{
    u32 now = __sync_fetch_and_add(&p->judged, 1);
    u32 sequential = follow_stream(file, now, start, start + length);
    count_pattern(p, sequential, follow_stride(p, now, start, length));
}
