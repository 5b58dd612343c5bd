// What a program reads and writes through mapped memory, in sums, in addition to the calls.
#pragma once

#include "calls.bpf.h"
#include "fault.bpf.h"
#include "folio.bpf.h"

#ifdef HAVE_mm_filemap_fault

static __always_inline void count_mapped(u32 op, u64 calls, u64 bytes)
{
    struct mode_t *m = get_mode(op, BY_MAPPING);
    if (!m)
        return;
    m->calls += calls;
    m->bytes += bytes;
}

static __always_inline int is_counted(u64 mapping)
{
    struct file_key_t key = {};
    return is_wanted(read_u64(mapping + address_space__host), &key, 0);
}

int on_fault(struct bpf_raw_tracepoint_args *ctx)
{
    u64 mapping = ctx->args[ARG_mm_filemap_fault];
    if (!is_followed(get_config()) || !is_counted(mapping))
        return 0;
    begin_fault(mapping, ctx->args[ARG_mm_filemap_fault + 1]);
    return 0;
}

int on_add(struct bpf_raw_tracepoint_args *ctx)
{
    u64 folio = ctx->args[ARG_mm_filemap_add_to_page_cache];
    struct fault_t *fault = is_followed(get_config()) ? get_fault(read_u64(folio + folio__mapping)) : 0;
    if (!fault)
        return 0;
    count_mapped(READ, !fault->is_counted, count_pages(folio) << PAGE_SHIFT);
    fault->is_counted = 1;
    return 0;
}

int on_dirty(struct bpf_raw_tracepoint_args *ctx)
{
    u64 mapping = ctx->args[ARG_writeback_dirty_folio + 1];
    if (is_followed(get_config()) && (get_fault(mapping) || get_call() < 0) && is_counted(mapping))
        count_mapped(WRITE, 1, count_pages(ctx->args[ARG_writeback_dirty_folio]) << PAGE_SHIFT);
    return 0;
}
#endif
