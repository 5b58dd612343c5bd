# The whole study on one page: specs flow through eight stages into one report.
#
#   snakemake --cores 2                                              the quickstart study
#   snakemake --cores 2 --config study=specs/studies/NAME.yaml       another one
#   snakemake -n                                                     what would be done
#
# rules/*.smk is flow, one file per stage; rules/mismatch/*.sql is judgement.
from snakemake.utils import min_version

from knobscope.pipeline import Pipeline

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


localrules:
    all,


# The target asks for the last fit of every case itself: a stricter threshold on a finished study then adds just the
# rounds that are missing (behind a checkpoint Snakemake would not see the change).
rule all:
    input:
        lambda wildcards: PIPELINE.last_fits(checkpoints),
        f"{RESULTS}/report.html",


include: "rules/plan.smk"
include: "rules/characterise.smk"
include: "rules/prepare.smk"
include: "rules/measure.smk"
include: "rules/select.smk"
include: "rules/models.smk"
include: "rules/tune.smk"
include: "rules/detect.smk"
include: "rules/confirm.smk"
include: "rules/report.smk"


onsuccess:
    print(f"report: {RESULTS}/report.html")
