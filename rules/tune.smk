# Beside stage 6, in a study that asks for it: Optuna on the first knobs of the ranking and on all, through measured runs.


rule tune:
    input:
        fit=lambda wildcards: PIPELINE.last_fit(checkpoints, wildcards.case),
        profile=lambda wildcards: f"{RESULTS}/devices/{wildcards.case.split('/')[1]}.json",
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
        "knobscope tune --study {params.study} --case {wildcards.case} --fit {input.fit} --profile {input.profile}"
        " --store {params.store} --plan-out {output.plan} --out {output.runs} 2>&1 | tee {log}"
