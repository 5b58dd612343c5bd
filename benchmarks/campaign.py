"""How long does knobscope take for a campaign as large as that of He et al. (PVLDB 16(7), 2023): 66,000 runs?

Run `python benchmarks/campaign.py [--runs 66000] [--steps dag detect ...]`; the study is simulated once per `--folder`
(`campaign_study.py`) and kept there, so that a step can be repeated alone. Each step is the command that a study runs:

    dag          snakemake -n before anything is measured
    checkpoints  snakemake -n when everything is measured: all checkpoints are evaluated, the DAG has all jobs
    import       a table of that many runs, as CSV
    detect       all runs into one database, effects, rules
    select       the last fit of one case
    report       the page
    browser      opens the page in headless Chromium, from start to the last event of loading (beside an empty page)
    sizes        of the files

Printed are wall time, CPU time of the command and of what it started, and the memory of the largest process.
"""

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from campaign_study import NAME, ROUNDS, load_specs, write_runs, write_specs, write_table_of_runs

ROOT = Path(__file__).parents[1]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
_BROWSER = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking",
            "--disable-component-update", "--no-first-run", "--dump-dom")  # fmt: skip


class Campaign:
    """A simulated study in a folder, and the commands that it is measured with."""

    def __init__(self, folder: Path, runs: int) -> None:
        self.folder, self.runs = folder, runs
        self.results = folder / "results" / NAME
        self.study = folder / f"specs/studies/{NAME}.yaml"

    def dag(self) -> None:
        """Let Snakemake plan the study that has no results."""
        _show("dag", self._snakemake(f"{NAME}-new"), self.folder)

    def checkpoints(self) -> None:
        """Let Snakemake evaluate every checkpoint."""
        _show("checkpoints", self._snakemake(NAME), self.folder)

    def _snakemake(self, study: str) -> list[str]:
        profile = str(ROOT / "profiles/default")
        command = [sys.executable, "-m", "snakemake", "-n", "--quiet", "--snakefile", str(ROOT / "Snakefile")]
        return [*command, "--profile", profile, "--config", f"study=specs/studies/{study}.yaml"]

    def import_table(self) -> None:
        """Import a table of as many runs."""
        table, out = self.folder / "runs.csv", self.folder / "imported"
        if not table.exists():
            write_table_of_runs(table, self.runs)
        shutil.rmtree(out, ignore_errors=True)
        _show("import", _knobscope("import", str(table), "--study", "imported", "--out", str(out)), self.folder)

    def detect(self) -> None:
        """Judge the study."""
        files = {
            "runs": sorted(self.results.glob("*/*/*/runs/*")),
            "plans": sorted(self.results.glob("*/*/*/plan/*")),
            "fits": sorted(self.results.glob("*/*/*/fit/*")),
            "devices": sorted(self.results.glob("devices/*")),
        }
        named = [word for name, paths in files.items() for word in (f"--{name}", *map(str, paths))]
        options = ["--study", str(self.study), "--root", str(self.folder), *named]
        _show("detect", _knobscope("detect", *options, "--out", str(self.database)), self.folder)

    def select(self) -> None:
        """Fit all screening runs of a case."""
        case = load_specs(self.folder).cases[0]
        folder = self.results / str(case)
        named = [word for name, glob in (("runs", "runs/screen-*"), ("plans", "plan/screen-*"))
                 for word in (f"--{name}", *map(str, sorted(folder.glob(glob))))]  # fmt: skip
        options = [
            "--study",
            str(self.study),
            "--root",
            str(self.folder),
            "--case",
            str(case),
            "--round",
            str(ROUNDS - 1),
        ]
        _show("select", _knobscope("select", *options, *named, "--out", str(self.folder / "fit.json")), self.folder)

    def report(self) -> None:
        """Render the page."""
        options = ["--study", str(self.study), "--root", str(self.folder), "--database", str(self.database)]
        _show("report", _knobscope("report", *options, "--out", str(self.page)), self.folder)

    def browser(self) -> None:
        """Open an empty page, and the report."""
        if CHROMIUM is None:
            print("browser      Chromium is not installed")
            return
        empty = self.folder / "empty.html"
        empty.write_text("<!DOCTYPE html><title>empty</title>", encoding="utf-8")
        for name, page in (("empty page", empty), ("browser", self.page)):
            profile = f"--user-data-dir={self.folder / 'chromium'}"
            _show(name, [CHROMIUM, *_BROWSER, profile, page.as_uri()], self.folder)

    def sizes(self) -> None:
        """Print the sizes of what was written."""
        records = [path.stat().st_size for path in (self.results / "store").iterdir()]
        mean = sum(records) / len(records)
        print(f"store        {mean * self.runs / 1e6:.1f} MB, reckoned from {len(records)} records of {mean:.0f} bytes")
        blocks = [path.stat().st_size for path in self.results.glob("*/*/*/runs/*/*")]
        print(f"blocks       {sum(blocks) / 1e6:.1f} MB in {len(blocks)} files")
        for path in (self.database, self.page):
            if path.exists():
                print(f"{path.name:12} {path.stat().st_size / 1e6:.1f} MB")

    @property
    def database(self) -> Path:
        """The study's database."""
        return self.folder / "study.duckdb"

    @property
    def page(self) -> Path:
        """The report."""
        return self.folder / "report.html"


def _knobscope(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "knobscope", *arguments]


def _show(name: str, command: list[str], folder: Path) -> None:
    """Run a command and print what it took; SystemExit with the end of its output where it fails."""
    log = folder / f"{name.replace(' ', '-')}.log"
    begin = time.monotonic()
    with log.open("w") as out:
        process = subprocess.Popen(command, cwd=folder, stdout=out, stderr=subprocess.STDOUT)
        _, status, used = os.wait4(process.pid, 0)
    wall = time.monotonic() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{name} failed:\n{log.read_text()[-2000:]}")
    cpu, memory = used.ru_utime + used.ru_stime, used.ru_maxrss / 1024
    print(f"{name:12} {wall:7.1f} s wall {cpu:7.1f} s CPU {memory:7.0f} MiB", flush=True)


def main() -> None:
    """Make the study where it is not there yet, and print a line per step."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    steps: dict[str, Callable[[Campaign], None]] = {
        "dag": Campaign.dag, "checkpoints": Campaign.checkpoints, "import": Campaign.import_table,
        "detect": Campaign.detect, "select": Campaign.select, "report": Campaign.report, "browser": Campaign.browser,
        "sizes": Campaign.sizes,
    }  # fmt: skip
    parser.add_argument("--runs", type=int, default=66_000)
    parser.add_argument("--steps", nargs="+", choices=steps, default=list(steps))
    parser.add_argument("--folder", type=Path, help="where the study is made and kept (default: campaign-RUNS)")
    parser.add_argument("--jobs", type=int, default=2, help="processes that simulate")
    args = parser.parse_args()
    folder = (args.folder or Path(f"campaign-{args.runs}")).absolute()
    campaign, marker = Campaign(folder, args.runs), folder / "simulated"
    if not marker.exists():
        shutil.rmtree(folder, ignore_errors=True)
        write_specs(folder, args.runs)
        begin = time.monotonic()
        count = write_runs(folder, args.jobs)
        marker.write_text(str(count), encoding="utf-8")
        print(f"simulated {count} runs in {time.monotonic() - begin:.0f} s", flush=True)
    campaign.runs = int(marker.read_text(encoding="utf-8"))
    for step in args.steps:
        steps[step](campaign)


if __name__ == "__main__":
    main()
