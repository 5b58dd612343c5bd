# After the sweep's blocks, in a study that names the most of them: which values are still too noisy, and how many blocks
# more they get. Each round is a checkpoint: what it says decides on the next. It looks at noise only, never at effects.


checkpoint reinforce:
    input:
        runs=lambda wildcards: PIPELINE.sweep_runs(
            checkpoints, wildcards.case, int(wildcards.round)
        ),
        plans=lambda wildcards: PIPELINE.sweep_plans(
            checkpoints, wildcards.case, int(wildcards.round)
        ),
    output:
        f"{RESULTS}/{{case}}/repeat/{{round}}.json",
    log:
        f"{RESULTS}/logs/{{case}}/reinforce-{{round}}.log",
    resources:
        machine=1,
    params:
        study=PIPELINE.study_file,
        spec=PIPELINE.reinforce_spec,
    shell:
        "knobscope job --log {log:q} --seal {output:q} --"
        " reinforce --study {params.study:q} --case {wildcards.case:q} --round {wildcards.round:q} --runs {input.runs:q}"
        " --plans {input.plans:q} --out {output:q}"
