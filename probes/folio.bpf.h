// How many pages a folio of the page cache has, and which page a bio begins with.
#pragma once

#include "memory.bpf.h"

static __always_inline u64 count_pages(u64 folio)
{
    u64 pages = 1;
#if defined(HAVE_folio__flags) && (defined(HAVE_folio__nr_pages) || defined(HAVE_folio__folio_nr_pages))
    if (read_u64(folio + folio__flags) >> PG_head & 1)
#ifdef HAVE_folio__nr_pages
        pages = read_u32(folio + folio__nr_pages);
#else
        pages = read_u32(folio + folio__folio_nr_pages);
#endif
#endif
    return pages ? pages : 1;
}

// The head of the folio that a page belongs to, from a copy of the page. A tail page tells it by its address plus 1, since
// 7.2 perhaps by a mask: as folios lie at multiples of their size, what that has in common with the page's own address is
// the head either way.
static __always_inline u64 follow_head(u64 *copy, u64 page)
{
#ifdef HAVE_page__compound_head
    u64 head = GET(copy, page__compound_head, u64);
    return head & 1 ? head - 1 : page;
#else
    u64 info = GET(copy, page__compound_info, u64);
    return info & 1 ? page & info : page;
#endif
}

static __always_inline u64 find_folio(u64 page)
{
    u64 copy[page__HEAD / 8] = {};
    bpf_probe_read_kernel(copy, sizeof(copy), (void *)page);
    return follow_head(copy, page);
}

#ifdef HAVE_bio__bi_offset
#define bio__DONE bio__bi_offset
#elif defined(HAVE_bio__bi_bvec_done)
#define bio__DONE bio__bi_bvec_done
#endif
#ifdef bio__DONE
// The page that holds a bio's first byte; 0 for a bio without data. An element of its vector may span many folios that lie
// side by side in memory, and a bio that was cut off from a larger one begins in the middle of an element.
static __always_inline u64 find_first_page(u64 bio, u64 *offset_in_page)
{
    u64 vectors = read_u64(bio + bio__bi_io_vec);
    if (!vectors)
        return 0;
    u64 vector = vectors + read_u32(bio + bio__bi_idx) * (u64)bio_vec__END;
    u64 offset = (u64)read_u32(vector + bio_vec__bv_offset) + read_u32(bio + bio__DONE);
    *offset_in_page = offset & ((1 << PAGE_SHIFT) - 1);
    return read_u64(vector + bio_vec__bv_page) + (offset >> PAGE_SHIFT) * page__END;
}
#endif
