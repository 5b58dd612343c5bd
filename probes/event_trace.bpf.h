// A record per request, sent at its completion: only in a monitor that was asked for a trace (macro TRACE).
//
// What is known early waits in the request's slot: in the submitter's context its thread and the file and offset of
// the page it carries (none for direct I/O, which carries anonymous memory), at issue its offset, size and flags. The
// reader takes records out of the ring when it likes to: nobody is woken up. A full ring is counted.
// Overhead: see docs/evidence/monitor.md.
#pragma once

#include "folio.bpf.h"
#include "request.bpf.h"

#ifdef TRACE
#define TRACE_FUA 1
#define TRACE_PREFLUSH 2
#define TRACE_SYNC 4
#define TRACE_META 8
#define TRACE_LOCATED 16  // inode, device and offset are there
#define UNSEEN_END (~0ULL)

BPF_RINGBUF_OUTPUT(trace_events, TRACE_PAGES);
BPF_PERCPU_ARRAY(trace_lost, u64, 1);

// The file and offset of a bio's first page; nothing for anonymous memory, pages without a file, and block devices.
static __always_inline void note_location(struct note_t *note, u64 bio)
{
#ifdef HAVE_folio__index
    u64 offset_in_page = 0, page = find_first_page(bio, &offset_in_page), folio = page ? find_folio(page) : 0;
    u64 mapping = folio ? read_u64(folio + folio__mapping) : 0;
    u64 inode = mapping && !(mapping & 3) ? read_u64(mapping + address_space__host) : 0;
    if (!inode || (read_u32(inode + inode__i_mode) & S_IFMT) != S_IFREG)
        return;
    note->inode = read_u64(inode + inode__i_ino);
    note->device = read_u32(read_u64(inode + inode__i_sb) + super_block__s_dev);
    note->offset = ((read_u64(folio + folio__index) + (page - folio) / page__END) << PAGE_SHIFT) + offset_in_page;
    note->flags |= TRACE_LOCATED;
#endif
}

// In the submitter's context. The flush machinery clears FUA and PREFLUSH before it issues: they are seen only here.
static __always_inline void trace_start(struct slot_t *slot, u64 *request)
{
    if (!slot)
        return;
    struct note_t *note = &slot->note;
    u32 flags = GET(request, request__cmd_flags, u32);
    note->flags = (flags & FLAG(FUA) ? TRACE_FUA : 0) | (flags & FLAG(PREFLUSH) ? TRACE_PREFLUSH : 0);
    note->pid = bpf_get_current_pid_tgid() >> 32;
    note->thread = bpf_get_current_pid_tgid();
    note->sector = GET(request, request__sector, u64);
    bpf_get_current_comm(note->comm, sizeof(note->comm));
    note->inode = note->offset = note->device = 0;
    note_location(note, GET(request, request__bio, u64));
}

// The request may have grown at its head since it was made.
static __always_inline void trace_issue(struct slot_t *slot, u64 *request, u32 op, u64 now)
{
    struct note_t *note = &slot->note;
    u64 sector = GET(request, request__sector, u64), started = GET(request, request__start_time_ns, u64);
    u32 flags = GET(request, request__cmd_flags, u32);
    if (note->flags & TRACE_LOCATED)
        note->offset -= (note->sector - sector) << 9;
    note->flags &= TRACE_FUA | TRACE_PREFLUSH | TRACE_LOCATED;
    note->flags |= (flags & FLAG(SYNC) ? TRACE_SYNC : 0) | (flags & FLAG(META) ? TRACE_META : 0);
    note->op = op;
    note->issued_at = now;
    note->wait = started && started <= now ? now - started : 0;
    note->sector = sector;
    note->bytes = GET(request, request__data_len, u32);
}

static __always_inline void trace_end(struct config_t *c, struct slot_t *slot, u32 queue, u64 latency, int failed)
{
    int zero = 0;
    struct note_t *note = &slot->note;
    note->latency = latency;
    note->queue = queue;
    note->file = slot->asked.file;
    note->owner = slot->asked.owner;
    note->failed = failed;
    u64 *lost = 0;
    if (c->epoch & 1 && trace_events.ringbuf_output(note, sizeof(*note), BPF_RB_NO_WAKEUP))
        lost = trace_lost.lookup(&zero);
    if (lost)
        *lost += 1;
    note->flags = note->pid = note->thread = 0;  // what comes next may have no start: nobody submits a flush
}

// A completion that was never seen: the request is in the trace all the same, without a latency.
static __always_inline void trace_forgotten(struct config_t *c, struct slot_t *slot, u32 queue)
{
    if (slot && slot->state == ISSUED && slot->epoch == (u8)c->epoch && is_counted(slot->asked.owner))
        trace_end(c, slot, queue, UNSEEN_END, 0);
}
#else
#define trace_start(slot, request)
#define trace_issue(slot, request, op, now)
#define trace_end(config, slot, queue, latency, failed)
#define trace_forgotten(config, slot, queue)
#endif
