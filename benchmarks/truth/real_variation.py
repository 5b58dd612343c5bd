"""How much does a configuration of a real server differ from block to block, beyond the noise of a run?

Run `python benchmarks/truth/real_variation.py STUDY ...` on finished studies (their names below `results`); it reads
results/STUDY/study.duckdb and nothing else. Log throughput of a run of the sweep is the sum of its block, its
configuration, the block's deviation of this configuration, and noise. The noise is known from configurations that a
block holds more than once, as it does the default; the deviation is what is left of the means of each configuration in
each block after both sums are fitted. Printed are the two standard deviations, the second with its 95 % interval, and
the p value of the F test of whether it is above nothing; last, all cases together, in units of their noise.
`block_variation.py` shows what such deviations do to intervals.
"""

import argparse
import math
from pathlib import Path
from typing import NamedTuple

import duckdb
import numpy as np
import pandas as pd
from scipy.stats import f

_RUNS = """
    SELECT dbms || '/' || device || '/' || workload AS measured_case, config_id, block_id, ln(throughput_ops) AS log_ops
    FROM ok_runs WHERE phase = 'sweep' AND throughput_ops > 0
"""


class Variation(NamedTuple):
    """The scatter of a case's runs: sd of the noise, and how the mean square of what is left compares with it."""

    cells: int
    noise: float
    ratio: float  # of the mean squares: 1 where there is noise alone
    degrees: int
    noise_degrees: int
    runs_per_cell: float

    def describe(self, scale: float) -> str:
        """Return the deviation in a block in units of `scale`, its 95 % interval, and the p value of the F test."""
        ends = [self.ratio / f.ppf(share, self.degrees, self.noise_degrees) for share in (0.5, 0.975, 0.025)]
        deviation, low, high = (scale * math.sqrt(max(0.0, (end - 1) / self.runs_per_cell)) for end in ends)
        p_value = f.sf(self.ratio, self.degrees, self.noise_degrees)
        return f"{deviation:.3f} ({low:.3f} to {high:.3f}) | {p_value:.2g}"


def measure_variation(runs: pd.DataFrame) -> Variation | None:
    """Return the scatter of a case's runs; None where a block repeats nothing, or too little is crossed."""
    cells = runs.groupby(["config_id", "block_id"])["log_ops"].agg(["mean", "count", "var"]).reset_index()
    repeated = cells[cells["count"] > 1]
    noise_degrees = int((repeated["count"] - 1).sum())
    configs, blocks = (pd.get_dummies(cells[name], dtype=float).to_numpy() for name in ("config_id", "block_id"))
    design = np.hstack([configs, blocks[:, 1:]])
    degrees = len(cells) - int(np.linalg.matrix_rank(design))
    if noise_degrees < 1 or degrees < 1:
        return None
    noise = float((repeated["var"] * (repeated["count"] - 1)).sum() / noise_degrees)
    # Weighted by their runs, means have the variance of one run.
    weights, means = np.sqrt(cells["count"].to_numpy(float)), cells["mean"].to_numpy()
    fitted = np.linalg.lstsq(design * weights[:, None], means * weights, rcond=None)[0]
    squares = float(np.sum((weights * (means - design @ fitted)) ** 2)) / degrees
    return Variation(len(cells), math.sqrt(noise), squares / noise, degrees, noise_degrees, float(np.mean(weights**2)))


def pool(cases: list[Variation]) -> Variation:
    """Return all cases as one whose noise is 1: approximately, since each case knows its noise from few runs."""
    degrees = sum(case.degrees for case in cases)
    return Variation(
        cells=sum(case.cells for case in cases),
        noise=1.0,
        ratio=sum(case.ratio * case.degrees for case in cases) / degrees,
        degrees=degrees,
        noise_degrees=sum(case.noise_degrees for case in cases),
        runs_per_cell=float(np.mean([case.runs_per_cell for case in cases])),
    )


def main() -> None:
    """Print a row for each case of the studies."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("studies", nargs="+")
    print("| case | cells | noise of a run | deviation in a block (95 % interval) | p |\n|---|---|---|---|---|")
    cases: list[Variation] = []
    for study in parser.parse_args().studies:
        with duckdb.connect(str(Path("results") / study / "study.duckdb"), read_only=True) as connection:
            runs = connection.execute(_RUNS).fetch_df()
        for name, of_case in runs.groupby("measured_case"):
            found = measure_variation(of_case)
            if found is None:
                print(f"| {name} | | no configuration is repeated in a block | | |")
                continue
            cases.append(found)
            print(f"| {name} | {found.cells} | {found.noise:.3f} | {found.describe(found.noise)} |")
    if cases:
        print(f"| all, in units of the noise | {sum(case.cells for case in cases)} | 1 | {pool(cases).describe(1)} |")


if __name__ == "__main__":
    main()
