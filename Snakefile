# The whole study on one page: specs flow through the stages into one report.
#
#   snakemake --cores 2                                              the quickstart study
#   snakemake --cores 2 --config study=specs/studies/NAME.yaml       another one
#   snakemake -n                                                     what would be done
#
# rules/*.smk is flow, one file per stage; rules/mismatch/ is judgement.
from pathlib import Path

from snakemake.utils import min_version

from knobscope.workflow.pipeline import Pipeline

min_version("9.0")


container: "docker://debian:bookworm"


PIPELINE = Pipeline.open(config, workflow)
RESULTS = PIPELINE.results


wildcard_constraints:
    case="|".join(map(str, PIPELINE.cases)),
    device="|".join(PIPELINE.devices),
    phase="screen|sweep",
    round=r"\d+",
    block=r"\d+",


# Where the others are jobs of a cluster, these take less time than to submit them.
localrules:
    all,
    plan_screening,
    plan_sweep,
    plan_reinforcement,
    models,
    remeasure_all,
    imitate_all,
    report,


# The target asks for the last fit of every case itself, and for what ended its sweep: a stricter threshold on a finished
# study then adds just the rounds that are missing (behind a checkpoint Snakemake would not see the change). It asks for
# the database, too: one that was deleted is made again, which Snakemake does not do for what only the report is made of.
rule all:
    input:
        PIPELINE.by_case(lambda case: [PIPELINE.last_fit(checkpoints, case)]),
        PIPELINE.by_case(lambda case: PIPELINE.last_reinforcement(checkpoints, case)),
        f"{RESULTS}/study.duckdb",
        f"{RESULTS}/report.html",


include: "rules/plan.smk"
include: "rules/characterise.smk"
include: "rules/prepare.smk"
include: "rules/measure.smk"
include: "rules/select.smk"
include: "rules/models.smk"
include: "rules/reinforce.smk"
include: "rules/tune.smk"
include: "rules/detect.smk"
include: "rules/remeasure.smk"
include: "rules/imitate.smk"
include: "rules/report.smk"


onstart:
    PIPELINE.check_versions(workflow)


# With --until there may be none yet.
onsuccess:
    if Path(RESULTS, "report.html").exists():
        print(f"report: {RESULTS}/report.html")


# After a job failed, and after Ctrl-C.
onerror:
    print(
        f"not finished: what was measured is kept, the same command goes on with the rest; logs: {RESULTS}/logs"
    )
