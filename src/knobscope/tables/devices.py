"""Tables of what fio measured on a device."""

__all__ = ["DEVICES_TABLES"]

DEVICES_TABLES: dict[str, dict[str, str]] = {
    "device_profile": {
        "device": "VARCHAR",
        "tier": "VARCHAR",
        "tier_rank": "INTEGER",  # higher is faster
        "block_device": "VARCHAR",
        "filesystem": "VARCHAR",
        "measured_at": "TIMESTAMP",
        "preferred_write_bytes": "BIGINT",
        "fsync_rate": "DOUBLE",  # 4 KiB writes, each followed by fsync, per second, one at a time
        "fsync_p50_us": "DOUBLE",
        "random_read_iops_qd1": "DOUBLE",
        "random_read_iops_best": "DOUBLE",
        "best_queue_depth": "INTEGER",
        "random_sequential_ratio": "DOUBLE",  # 4 KiB reads at depth 1: random / sequential
    },
    # The measured curves behind the profile.
    "device_curve": {
        "device": "VARCHAR",
        "curve": "VARCHAR",  # write_size | write_size_fsync | queue_depth
        "pattern": "VARCHAR",  # read | write | randread | randwrite
        "block_bytes": "BIGINT",
        "queue_depth": "INTEGER",
        "iops": "DOUBLE",
        "bytes_per_s": "DOUBLE",
        "latency_p50_us": "DOUBLE",
    },
}
