# The runs of one round, in blocks. Screening rounds follow one another; the sweep follows the last of them, and
# further rounds of the sweep follow what `reinforce` asks for.


rule plan_screening:
    input:
        plans=lambda wildcards: PIPELINE.earlier_plans(
            wildcards.case, int(wildcards.round)
        ),
        runs=lambda wildcards: PIPELINE.earlier_runs(
            wildcards.case, int(wildcards.round)
        ),
    output:
        f"{RESULTS}/{{case}}/plan/screen-{{round}}.parquet",
    log:
        f"{RESULTS}/logs/{{case}}/plan-screen-{{round}}.log",
    resources:
        machine=1,
    params:
        study=PIPELINE.study_file,
        spec=lambda wildcards: PIPELINE.plan_spec(wildcards.case),
    shell:
        "knobscope job --log {log:q} --seal {output:q} --"
        " plan --study {params.study:q} --case {wildcards.case:q} --phase screen --round {wildcards.round:q}"
        " --plans {input.plans:q} --runs {input.runs:q}"
        " --out {output:q}"


rule plan_sweep:
    input:
        lambda wildcards: PIPELINE.last_fits(
            checkpoints, dbms=wildcards.case.split("/")[0]
        ),
    output:
        f"{RESULTS}/{{case}}/plan/sweep-0.parquet",
    log:
        f"{RESULTS}/logs/{{case}}/plan-sweep-0.log",
    resources:
        machine=1,
    params:
        study=PIPELINE.study_file,
        spec=lambda wildcards: PIPELINE.sweep_spec(wildcards.case),
    shell:
        "knobscope job --log {log:q} --seal {output:q} --"
        " plan --study {params.study:q} --case {wildcards.case:q} --phase sweep --fits {input:q}"
        " --out {output:q}"


rule plan_reinforcement:
    input:
        lambda wildcards: PIPELINE.reinforcement_before(
            wildcards.case, int(wildcards.round)
        ),
    output:
        f"{RESULTS}/{{case}}/plan/sweep-{{round}}.parquet",
    log:
        f"{RESULTS}/logs/{{case}}/plan-sweep-{{round}}.log",
    wildcard_constraints:
        round=r"[1-9]\d*",
    resources:
        machine=1,
    params:
        study=PIPELINE.study_file,
        spec=lambda wildcards: PIPELINE.sweep_spec(wildcards.case),
    shell:
        "knobscope job --log {log:q} --seal {output:q} --"
        " plan --study {params.study:q} --case {wildcards.case:q} --phase sweep --round {wildcards.round:q}"
        " --reinforce {input:q} --out {output:q}"
