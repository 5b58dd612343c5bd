# Next to `detect`, in a study that asks for it: Optuna on the first knobs of the ranking and on all, through measured runs.


rule tune:
    input:
        fit=lambda wildcards: PIPELINE.last_fit(checkpoints, wildcards.case),
        profiles=lambda wildcards: PIPELINE.profiles(wildcards.case),
    output:
        runs=directory(f"{RESULTS}/{{case}}/runs/tune"),
        plan=f"{RESULTS}/{{case}}/plan/tune.parquet",
    log:
        f"{RESULTS}/logs/{{case}}/tune.log",
    resources:
        **PIPELINE.device_resources,
        machine=1,
    params:
        study=PIPELINE.study_file,
        store=f"{RESULTS}/store",
        spec=lambda wildcards: PIPELINE.tune_spec(wildcards.case),
    shell:
        "knobscope job --log {log:q} --seal {output:q} --"
        " tune --study {params.study:q} --case {wildcards.case:q} --fit {input.fit:q} --profile {input.profiles[0]:q}"
        " --store {params.store:q} --plan-out {output.plan:q} --out {output.runs:q}"
