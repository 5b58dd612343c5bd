// Which thread submitted a request, by name: journal and writeback threads apart from each other and from the workload.

#define NAME_WORDS 4
#define PF_WQ_WORKER 0x00000020

enum { UNNAMED, BEING_NAMED, NAMED };

struct submitter_t { u64 name[NAME_WORDS], state, is_worker; };
struct submitted_t { u64 requests[OPS], bytes[OPS]; };

BPF_ARRAY(submitters, struct submitter_t, MAX_SUBMITTERS);
BPF_PERCPU_ARRAY(submitted, struct submitted_t, MAX_SUBMITTERS + 1);  // the last one: all that found no place

// A kernel worker has the name of what it works on just now: flush-7:0, xfs-cil/loop0.
static __always_inline u32 get_name(u64 task, u64 *name)
{
#if defined(HAVE_task_struct__worker_private) && defined(HAVE_kthread__data) && defined(HAVE_worker__desc)
    if (LOAD(task, task_struct__flags, u32) & PF_WQ_WORKER) {
        u64 worker = LOAD(CAST(LOAD(task, task_struct__worker_private, u64), kthread), kthread__data, u64);
        bpf_probe_read_kernel(name, 8 * NAME_WORDS, (void *)(worker + worker__desc));
        return 1;
    }
#endif
#ifdef TYPED
    name[0] = LOAD(task, task_struct__comm, u64);
    name[1] = LOAD(task, task_struct__comm + 8, u64);
#else
    bpf_get_current_comm(name, 16);
#endif
    return 0;
}

static __always_inline u32 find_submitter(u64 task)
{
    u64 name[NAME_WORDS] = {};
    u32 is_worker = get_name(task, name);
    u64 mixed = (name[0] ^ name[1] << 7 ^ name[2] << 13 ^ name[3] << 19) * GOLDEN;
    for (u32 i = 0; i < 4; i++) {
        u32 place = ((mixed >> 48) + i) % MAX_SUBMITTERS;
        struct submitter_t *s = submitters.lookup(&place);
        if (!s)
            break;
        if (s->state == UNNAMED && __sync_val_compare_and_swap(&s->state, UNNAMED, BEING_NAMED) == UNNAMED) {
            for (int word = 0; word < NAME_WORDS; word++)
                s->name[word] = name[word];
            s->is_worker = is_worker;
            s->state = NAMED;
        }
        // One that is being named elsewhere is passed over: user space adds up what has the same name.
        if (s->state == NAMED && s->name[0] == name[0] && s->name[1] == name[1] && s->name[2] == name[2] &&
            s->name[3] == name[3] && s->is_worker == is_worker)
            return place;
    }
    return MAX_SUBMITTERS;
}

static __always_inline void count_submitter(struct config_t *c, u32 place, u32 op, u32 bytes)
{
    struct submitted_t *s = submitted.lookup(&place);
    if (!s || op >= OPS || !is_measured(c))
        return;
    s->requests[op] += 1;
    s->bytes[op] += bytes;
}
