// Bios that became part of a request under way, and bios that were too large for one request: neither is one of its own.
#pragma once

#include "owner.bpf.h"

static __always_inline struct totals_t *get_bio_totals(u64 bio)
{
    struct config_t *c = get_config();
    u32 op = classify_bio(c, bio);
    return op < OPS ? get_totals(c, op) : 0;
}

static __always_inline int count_merge(u64 bio)
{
    struct totals_t *t = get_bio_totals(bio);
    if (t)
        t->merges += 1;
    return 0;
}

int HANDLER(on_backmerge)
{
    return count_merge(ctx->args[ARG_block_bio_backmerge]);
}

int HANDLER(on_frontmerge)
{
#ifndef HAVE_block_io_start
    remember_bio(ctx->args[ARG_block_bio_frontmerge]);  // it is the request's first one now
#endif
    return count_merge(ctx->args[ARG_block_bio_frontmerge]);
}

int HANDLER(on_request_merge)  // two requests became one
{
    struct config_t *c = get_config();
    READ(request, request__START_END, ctx->args[ARG_block_rq_merge]);
    u32 op = classify(c, request);
    struct totals_t *t = op < OPS ? get_totals(c, op) : 0;
    if (t)
        t->merges += 1;
    return 0;
}

int HANDLER(on_split)
{
    struct totals_t *t = get_bio_totals(ctx->args[ARG_block_split]);
    if (t)
        t->splits += 1;
    return 0;
}
