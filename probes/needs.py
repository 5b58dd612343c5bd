"""What the block program reads of the kernel, and which of its functions watches which tracepoint."""

from __future__ import annotations

from pathlib import Path

from file_of import FOLIO_MEMBERS, NAME_MEMBERS, PAGE_HEAD
from followed import FOLLOWED_HEADERS, FOLLOWED_MEMBERS, FOLLOWED_TRACEPOINTS
from kernel import Kernel, Member, Needs

_FILESYSTEMS = Path("/proc/filesystems")

_HANDLERS = {
    "block_io_start": "on_start",
    "block_getrq": "on_getrq",
    "block_bio_queue": "on_queue",
    "block_bio_backmerge": "on_backmerge",
    "block_bio_frontmerge": "on_frontmerge",
    "block_rq_merge": "on_request_merge",
    "block_split": "on_split",
    "block_rq_issue": "on_issue",
    "block_rq_complete": "on_complete",
    "block_rq_requeue": "on_requeue",
    "writeback_dirty_folio": "on_dirty",
    "writeback_dirty_page": "on_dirty",
}
_START = (  # what every event needs
    Member("request", "q", 8),
    Member("request", "mq_hctx", 8),
    Member("request", "cmd_flags", 4),
    Member("request", "tag", 4),
    Member("request", "internal_tag", 4),
    Member("request", "__data_len", 4),
    Member("request", "__sector", 8),
    Member("request", "bio", 8),
)
_WHOLE = (*_START, Member("request", "start_time_ns", 8), Member("request", "rq_disk", 8, until="5.17"))
_BIO = (
    Member("bio", "bi_bdev", 8),
    Member("bio", "bi_opf", 4),
    Member("bio", "bi_iter.bi_sector", 8),
    Member("bio", "bi_iter.bi_size", 4),
    Member("bio", "bi_iter.bi_idx", 4),
    Member("bio", "bi_end_io", 8),
    Member("bio", "bi_private", 8),
    Member("bio", "bi_io_vec", 8),
)
_PAGE = (*PAGE_HEAD, Member("page", "mapping", 8))
_INODE = (Member("inode", "i_mode", 2), Member("inode", "i_sb", 8), Member("inode", "i_ino", 8))
#: What leads from a bio to the one that it was made for; of modules, which are there once something is stacked.
_STACK = tuple(
    Member(struct, path, size, in_headers=False)
    for struct, path, size in (
        ("dm_target_io", "clone", 0),
        ("dm_target_io", "io", 8),
        ("dm_io", "orig_bio", 8),
        ("dm_crypt_io", "base_bio", 8),
        ("md_io_clone", "orig_bio", 8),  # since 6.4
        ("md_io_clone", "bio_clone", 0),
        ("md_io_acct", "orig_bio", 8),
        ("r1bio", "master_bio", 8),
        ("r10bio", "master_bio", 8),
        ("stripe_head", "dev", 0),
        ("stripe_head", "disks", 4),
        ("r5dev", "toread", 8),
        ("r5dev", "towrite", 8),
        ("r5dev", "written", 8),
        ("search", "orig_bio", 8),  # of bcache
        ("search", "bio.bio", 0),
        ("search", "iop", 0),
    )
)
#: Member or tracepoint -> what is missing without it.
_LIMITS = {
    "dentry__d_alias": "names of files are not known, only their inodes",
    "worker__desc": "kernel threads are not named by what they work on",
    "block_split": "bios that were split are not counted",
    "block_rq_merge": "requests that were merged are not counted",
}
BLOCK_NEEDS = Needs(
    members=(
        *_WHOLE,
        *_BIO,
        *_PAGE,
        *_INODE,
        Member("request_queue", "disk", 8, since="5.15"),
        Member("blk_mq_hw_ctx", "queue_num", 4),
        Member("gendisk", "disk_name", 32),
        Member("gendisk", "queue", 8),
        Member("block_device", "bd_disk", 8),
        Member("block_device", "bd_holder", 8),
        Member("block_device", "bd_dev", 4),
        Member("bio_vec", "bv_page", 8),
        Member("address_space", "host", 8),
        Member("address_space", "i_pages.xa_flags", 4),
        Member("address_space", "nrpages", 8),
        Member("inode", "i_mapping", 8),
        Member("inode", "i_generation", 4),
        Member("super_block", "s_dev", 4),
        Member("super_block", "s_bdev", 8),
        Member("super_block", "s_magic", 8),
        *NAME_MEMBERS,
        *FOLIO_MEMBERS,
        *FOLLOWED_MEMBERS,
        Member("iomap_dio", "iocb", 8, in_headers=False),
        Member("iomap_dio_simple", "iocb", 8, in_headers=False),  # since 7.3
        Member("iomap_dio_simple", "bio", 0, in_headers=False),
        Member("bio", "bi_pool", 8),
        Member("btrfs_bio", "inode", 8, in_headers=False),  # since 6.3
        Member("btrfs_bio", "bio", 0, in_headers=False),
        Member("btrfs_inode", "vfs_inode", 0, in_headers=False),
        Member("btrfs_io_stripe", "bioc", 8, in_headers=False),
        Member("btrfs_io_context", "orig_bio", 8, in_headers=False),
        Member("buffer_head", "b_end_io", 8, since="2.5", until="7.3"),
        *_STACK,
        Member("kiocb", "ki_filp", 8),
        Member("file", "f_inode", 8),
        Member("task_struct", "flags", 4),
        Member("task_struct", "comm", 16),
        Member("task_struct", "worker_private", 8, since="5.17"),
        Member("kthread", "data", 8, in_headers=False),
        Member("worker", "desc", 0, in_headers=False),  # 24 bytes until 6.10, then 32
    ),
    tracepoints={
        "block_io_start": "request",
        "block_rq_issue": "request",
        "block_rq_complete": "request",
        "block_rq_requeue": "request",
        "block_rq_merge": "request",
        "block_getrq": "bio",
        "block_bio_backmerge": "bio",
        "block_bio_frontmerge": "bio",
        "block_split": "bio",
        "block_bio_queue": "bio",
        "writeback_dirty_folio": "folio",
        "writeback_dirty_page": "page",  # until 5.17
        **FOLLOWED_TRACEPOINTS,
    },
    heads={
        "request__START_END": _START,
        "request__END": _WHOLE,
        "bio__HEAD": _BIO,
        "page__HEAD": _PAGE,
        "inode__HEAD": _INODE,
    },
    sizes=("bio_vec",),
    private_sizes=("r5dev",),
    enums=("req_op", "req_opf", "req_flag_bits", "pageflags"),  # req_opf until 6.0
    headers=("blk-mq", "blkdev", "buffer_head", "fs", "sched", "dcache", *FOLLOWED_HEADERS),
    symbols=(
        *("bio_chain_endio", "iomap_dio_bio_end_io", "iomap_dio_simple_pool"),
        *("xlog_bio_end_io", "xfs_buf_bio_end_io"),
        *("end_bio_bh_io_sync", "journal_end_buffer_io_sync"),
        *("btrfs_simple_end_io", "btrfs_orig_write_end_io", "btrfs_clone_write_end_io"),
        *("clone_endio", "crypt_endio", "md_end_clone_io", "md_end_io_acct"),
        *(f"{raid}_end_{way}_request" for raid in ("raid1", "raid10", "raid5") for way in ("read", "write")),
        *("raid5_align_endio", "bch_data_insert_endio", "bch_cache_read_endio", "backing_request_endio"),
    ),
)


def choose_handlers(kernel: Kernel, *, is_stacked: bool) -> dict[str, str]:
    """Return tracepoint -> function; who submits is asked per request since 6.5, before that per bio.

    `is_stacked`: whether other devices are stacked on the followed disks; then their bios are looked at, too.
    """
    handlers = {point: handler for point, handler in _HANDLERS.items() if point in kernel.tracepoints}
    if "block_io_start" in handlers:
        handlers.pop("block_getrq", None)
    if not is_stacked:
        handlers.pop("block_bio_queue", None)
    return handlers


def list_limits(kernel: Kernel, untyped: str | None) -> list[str]:
    """Return sentences on what the block program cannot do on this kernel; `untyped`: why it has its slow form."""
    limits = [sentence for fact, sentence in _LIMITS.items() if f"#define HAVE_{fact} 1\n" not in kernel.prelude]
    if "AT_iomap_dio_bio_end_io" not in kernel.prelude:
        limits.append("files of direct I/O are found by their addresses only")
    if "HAVE_btrfs_bio__inode" not in kernel.prelude and "\tbtrfs\n" in _FILESYSTEMS.read_text():
        limits.append("compressed writes of btrfs have no file and no owner (since Linux 6.3)")
    return limits + describe_cost(untyped)


def describe_cost(untyped: str | None) -> list[str]:
    """Return a sentence where a program has its slow form, for this reason."""
    return [f"the program costs about twice as much: {untyped}"] if untyped else []
