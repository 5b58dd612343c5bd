// What a tracer does: one event in a buffer when a request is issued, one when it completes. EMPTY does nothing.

#define READ(place, offset, type) ({ type value = 0; bpf_probe_read_kernel(&value, sizeof(value), (void *)((place) + (offset))); value; })
#define BPF_RB_NO_WAKEUP 1
#define PAGE_SIZE 4096
#define GET(copy, member, type) (*(type *)((char *)(copy) + (member)))

struct event_t { u64 at, request, sector; u32 bytes, flags, kind, process; };

BPF_ARRAY(queue, u64, 1);
#ifdef PERF_BUFFER
BPF_PERF_OUTPUT(events);
#else
BPF_RINGBUF_OUTPUT(events, 2048);  // 8 MiB
#endif

static __always_inline int is_followed(u64 request_queue)
{
    int zero = 0;
    u64 *known = queue.lookup(&zero);
    if (!known || *known)
        return known && *known == request_queue;
    u64 disk = READ(request_queue, request_queue__disk, u64);
    if (!disk || READ(disk, gendisk__major, u32) != MAJOR || READ(disk, gendisk__first_minor, u32) != MINOR)
        return 0;
    *known = request_queue;
    return 1;
}

static __always_inline int tell(struct bpf_raw_tracepoint_args *ctx, u64 address, u32 kind)
{
    u64 request[request__HEAD / 8];
    if (bpf_probe_read_kernel(request, sizeof(request), (void *)address) || !is_followed(GET(request, request__q, u64)))
        return 0;
    struct event_t event = {
        .at = bpf_ktime_get_ns(),
        .request = address,
        .sector = GET(request, request__sector, u64),
        .bytes = GET(request, request__data_len, u32),
        .flags = GET(request, request__cmd_flags, u32),
        .kind = kind,
        .process = bpf_get_current_pid_tgid() >> 32,
    };
#ifdef PERF_BUFFER
    events.perf_submit(ctx, &event, sizeof(event));
#else
    events.ringbuf_output(&event, sizeof(event), BPF_RB_NO_WAKEUP);
#endif
    return 0;
}

#ifdef EMPTY
int on_issue(void *ctx) { return 0; }
int on_complete(void *ctx) { return 0; }
#else
int on_issue(struct bpf_raw_tracepoint_args *ctx) { return tell(ctx, ctx->args[ARG_block_rq_issue], 0); }
int on_complete(struct bpf_raw_tracepoint_args *ctx) { return tell(ctx, ctx->args[ARG_block_rq_complete], 1); }
#endif
