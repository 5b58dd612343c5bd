"""What do workloads request of the device? Read share, sizes and order of a study's default configurations.

    python benchmarks/io_profiles.py results/workload-profiles/study.duckdb

The study has run several workloads on one DBMS (specs/studies/workload-profiles.yaml). For each it prints reads per
write, the share of reads, mean sizes, and the shares of reads and writes that continue a stream, over all monitored
runs of the default configuration.
"""

import argparse
from pathlib import Path

import duckdb

_PROFILES = """
    WITH sums AS (
        SELECT r.dbms, r.device, r.workload, op, sum(requests) AS requests, sum(bytes) AS bytes,
            sum(sequential_requests) AS in_order, count(DISTINCT r.run_id) AS runs
        FROM io_profile JOIN watched_runs r USING (run_id) WHERE r.is_sentinel AND op IN ('read', 'write') GROUP BY ALL
    )
    SELECT concat_ws('/', r.dbms, r.device, r.workload) AS case_name, r.runs,
        r.requests / w.requests, r.requests / (r.requests + w.requests),
        r.bytes / r.requests / 1024, w.bytes / w.requests / 1024, r.in_order / r.requests, w.in_order / w.requests
    FROM sums r JOIN sums w USING (dbms, device, workload) WHERE r.op = 'read' AND w.op = 'write' ORDER BY ALL
"""


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("database", type=Path)
    with duckdb.connect(str(parser.parse_args().database), read_only=True) as connection:
        rows = connection.execute(_PROFILES).fetchall()
    print("| case | runs | reads per write | reads | size of a read | of a write | reads in order | writes in order |")
    print("|---|---|---|---|---|---|---|---|")
    for case, runs, ratio, share, read_kib, write_kib, reads, writes in rows:
        sizes = f"{read_kib:.1f} KiB | {write_kib:.1f} KiB"
        print(f"| `{case}` | {runs} | {ratio:.2g} | {share:.0%} | {sizes} | {reads:.0%} | {writes:.0%} |")


if __name__ == "__main__":
    main()
