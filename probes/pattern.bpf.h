// The pattern of offsets, judged request by request; patterns.py names it.

#define STREAM_AGE 256  // requests of the same file and direction, after which a stream no longer goes on

struct pattern_t { u64 judged, sequential, strided, start, length, distance; u32 run; };

// Returns how many requests have turned out to be strided by this one: the third of equal distances, and those after.
static __always_inline u32 follow_stride(struct pattern_t *p, u32 now, u64 start, u64 length)
{
    u64 distance = start - p->start;
    int is_step = now && distance && distance != p->length;
    p->run = !is_step ? 0 : distance == p->distance ? p->run + 1 : 1;
    p->start = start;
    p->length = length;
    p->distance = distance;
    return p->run == 3 ? 3 : p->run > 3;
}

static __always_inline void count_pattern(struct pattern_t *p, u32 sequential, u32 strided)
{
    if (sequential)
        __sync_fetch_and_add(&p->sequential, sequential);
    else if (strided)
        __sync_fetch_and_add(&p->strided, strided);
}
