"""How often do a few settings of a benchmark lead to another conclusion about two systems than all of them do?

    python benchmarks/conclusions.py results/benchmark-settings/study.duckdb [--samples 20000]

The study has measured two DBMSs with all combinations of some settings (specs/studies/benchmark-settings.yaml). The
conclusion is which of the two is faster, by the mean of the natural-log ratio of throughput. For each sampling rate it
prints the share of random samples of the combinations whose conclusion differs from that of all, and the share of
single combinations in which another system is faster than in the sample. Idea: Hui et al., SIGMOD 2024.
"""

import argparse
import math
from pathlib import Path

import duckdb
import numpy as np

_RUNS = """
    SELECT dbms, list(knob || '=' || value ORDER BY knob) AS settings, avg(ops) FROM (
        SELECT r.dbms, r.run_id, any_value(ln(r.throughput_ops)) AS ops, v.knob, v.value
        FROM ok_runs r JOIN knob_values v USING (config_id)
        WHERE r.phase = 'screen' GROUP BY ALL
    ) GROUP BY dbms, run_id
"""


def read_ratios(database: Path) -> tuple[list[str], dict[tuple[str, ...], float]]:
    """Return the two DBMSs, and by setting the natural-log ratio of throughput of the second to the first."""
    with duckdb.connect(str(database), read_only=True) as connection:
        rows = connection.execute(_RUNS).fetchall()
    by_dbms: dict[str, dict[tuple[str, ...], list[float]]] = {}
    for dbms, settings, ops in rows:
        by_dbms.setdefault(dbms, {}).setdefault(tuple(settings), []).append(ops)
    first, second = sorted(by_dbms)
    shared = sorted(by_dbms[first].keys() & by_dbms[second].keys())
    return [first, second], {s: float(np.mean(by_dbms[second][s]) - np.mean(by_dbms[first][s])) for s in shared}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("database", type=Path)
    parser.add_argument("--samples", type=int, default=20_000)
    args = parser.parse_args()
    (first, second), ratios = read_ratios(args.database)
    delta = np.array(list(ratios.values()))
    least, most = min(ratios, key=ratios.__getitem__), max(ratios, key=ratios.__getitem__)
    print(f"{len(delta)} settings; {second} to {first}: {math.exp(delta.mean()):.2f}x (geometric mean)")
    print(f"{second} is faster in {int((delta > 0).sum())} of them")
    for setting in (least, most):
        print(f"  {math.exp(ratios[setting]):.2f}x with {', '.join(setting)}")
    rng = np.random.default_rng(1)
    is_faster = delta.mean() > 0
    print("\n| settings | rate | another conclusion than all | single settings that contradict it |\n|---|---|---|---|")
    for count in [n for n in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64) if n < len(delta)] + [len(delta)]:
        drawn = rng.permuted(np.tile(delta, (args.samples, 1)), axis=1)[:, :count].mean(axis=1) > 0
        contradicting = np.where(drawn, (delta <= 0).mean(), (delta > 0).mean()).mean()
        print(f"| {count} | {count / len(delta):.0%} | {(drawn != is_faster).mean():.1%} | {contradicting:.1%} |")


if __name__ == "__main__":
    main()
