"""An example of every command, for its help: the lines can be typed as they are, in the folder of a checkout."""

import argparse

_CASE = "--case sqlite/local-disk/ycsb-a"
_STUDY = "--study specs/studies/quickstart.yaml"
_RESULTS = "results/quickstart"

#: Command -> lines.
EXAMPLES: dict[str, list[str]] = {
    "job": ["knobscope job --log x.log --seal device.json -- characterise --quick local-disk --out device.json"],
    "init": ["knobscope init my-studies"],
    "validate": [
        "knobscope validate",
        "knobscope validate --runnable specs/dbms/mariadb.yaml",
        "knobscope validate --json",
    ],
    "schema": ["knobscope schema"],
    "rules": ["knobscope rules", "knobscope rules specs/studies/quickstart.yaml"],
    "doctor": ["knobscope doctor", "knobscope doctor --json", "knobscope doctor --load quickstart"],
    "drivers": ["knobscope drivers", "knobscope drivers specs/dbms/h2.yaml"],
    "introspect": ["knobscope introspect mariadb --out knobs.yaml"],
    "startable": [
        "knobscope startable mariadb --knob innodb_buffer_pool_size",
        "knobscope startable mariadb --study mariadb-all --trials 400",
    ],
    "durability": ["knobscope durability sqlite", "knobscope durability postgresql --knob fsync --cuts 10"],
    "plan": [f"knobscope plan {_STUDY} {_CASE} --phase screen --round 0 --out plan.parquet"],
    "characterise": ["knobscope characterise --quick local-disk --out device.json"],
    "devices": ["knobscope devices up loop"],
    "prepare": [f"knobscope prepare {_STUDY} {_CASE} --plan plan.parquet --out snapshots"],
    "measure": [
        f"knobscope measure {_STUDY} {_CASE} --plan plan.parquet --block screen-0-0 --profile device.json"
        f" --store {_RESULTS}/store --out block"
    ],
    "select": [f"knobscope select {_STUDY} {_CASE} --round 0 --runs block --plans plan.parquet --out fit.json"],
    "reinforce": [
        "knobscope reinforce --study specs/studies/sqlite-tiers.yaml --case sqlite/local-disk/ycsb-a --round 0"
        " --runs block-0 block-1 block-2 --plans plan.parquet --out more.json"
    ],
    "tune": [
        f"knobscope tune {_STUDY} {_CASE} --fit fit.json --profile device.json --store {_RESULTS}/store"
        " --plan-out tune.parquet --out tuned"
    ],
    "detect": [f"knobscope detect {_STUDY} --runs block --plans plan.parquet --out study.duckdb"],
    "remeasure": [
        "knobscope remeasure --study specs/studies/sqlite-causes.yaml --database detected.duckdb --device nvme-consumer"
        " --devices results/sqlite-causes/devices/*.json --store results/sqlite-causes/store --out nvme-consumer.json",
        "knobscope remeasure --study specs/studies/sqlite-causes.yaml --database detected.duckdb"
        " --remeasured nvme-consumer.json --out remeasured.duckdb",
    ],
    "imitate": [f"knobscope imitate {_STUDY} --database study.duckdb --out imitated.duckdb"],
    "report": [
        f"knobscope report {_STUDY} --database {_RESULTS}/study.duckdb --out report.html --figures figures",
    ],
    "finding": [
        "knobscope finding quickstart",
        "knobscope finding quickstart 1 --out for-developers",
        "knobscope finding quickstart --json",
    ],
    "compare": [
        "knobscope compare results/before results/after",
        "knobscope compare before after --out compared.html --csv --json compared.json",
        "knobscope compare old.duckdb new.duckdb --match postgresql/nvme-a/ycsb-a=postgresql18/nvme-b/ycsb-a",
    ],
    "progress": ["knobscope progress quickstart", "knobscope progress quickstart --once"],
    "show": ["knobscope show 3f2a", "knobscope show 3f2a --study quickstart --html run.html"],
    "watch": [
        "knobscope watch -- fio --name=x --rw=randwrite --bs=8k --size=64m --fsync=1 --unlink=1",
        "knobscope watch --device sda --json profile.json -- sleep 10",
    ],
    "attach": [
        "knobscope attach --port 5432 --for 60s",
        "knobscope attach --unit postgresql@15-main --for 60s --html why.html --write-study specs/studies/why.yaml",
    ],
    "judge": ["knobscope judge watched.json --profile device.json"],
    "trace": ["blkparse -i sda | gzip > trace.gz", "knobscope trace trace.gz --json profile.json --plot trace.svg"],
    "io-knobs": [
        "knobscope io-knobs specs/studies/quickstart.yaml",
        "knobscope io-knobs redis-all --measure --runs 100 -n",
    ],
    "models": ["knobscope models save specs/studies/quickstart.yaml --as quickstart"],
    "crate": ["knobscope crate quickstart --out quickstart.crate.zip", "knobscope crate --open quickstart.crate.zip"],
    "export": ["knobscope export specs/studies/quickstart.yaml --to optuna --top 5 --out space.json"],
    "import": [
        "knobscope import runs.csv --study theirs --table io_profile=io_profile.csv",
        "knobscope import sample.csv --study sample --response tps --set dbms=mysql --set device=disk1 "
        "--set tier=nvme_ssd --set workload=tpcc",
        "knobscope import --from optuna tuned.db --out trials.csv",
    ],
    "replay": [
        "knobscope replay grid.csv --response runtime --threshold 0.9 --trials 20",
        "knobscope replay grid.csv --response runtime --model anova --sampling random --json replay.json",
        "knobscope replay grid.csv --response runtime --html replay.html",
    ],
    "rank": ["knobscope rank runs.csv --response tps", "knobscope rank runs.csv --response tps --failed-value -1"],
    "trend": [
        "knobscope trend grid.csv --response tps --factor cache_size --axis log",
        "knobscope trend sample.csv --response tps --log --factor threads --adjust --json curve.json",
    ],
}


class _HelpWithExamples(argparse.HelpFormatter):
    """Keeps the lines of examples, which would otherwise be filled up to one paragraph."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if text.startswith("examples:"):
            return text
        return super()._fill_text(text, width, indent)


def add_examples(parser: argparse.ArgumentParser, lines: list[str]) -> None:
    """Put the examples of a command at the end of its help."""
    parser.formatter_class = _HelpWithExamples
    parser.epilog = "\n".join(["examples:", *(f"  {line}" for line in lines)])
