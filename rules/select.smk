# Which knobs matter, and whether screening may stop. Each round is a checkpoint: its fit decides on the next.


checkpoint select:
    input:
        runs=lambda wildcards: PIPELINE.screening_runs(
            wildcards.case, int(wildcards.round)
        ),
        plans=lambda wildcards: PIPELINE.screening_plans(
            wildcards.case, int(wildcards.round)
        ),
    output:
        f"{RESULTS}/{{case}}/fit/{{round}}.json",
    log:
        f"{RESULTS}/logs/{{case}}/select-{{round}}.log",
    resources:
        machine=1,
    params:
        study=PIPELINE.study_file,
        spec=PIPELINE.fit_spec,
    shell:
        "knobscope job --log {log:q} --seal {output:q} --"
        " select --study {params.study:q} --case {wildcards.case:q} --round {wildcards.round:q} --runs {input.runs:q}"
        " --plans {input.plans:q} --out {output:q}"
