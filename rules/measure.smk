# Stage 4: a block of runs on one device. Finished runs lie in the store, which is no rule's output: Snakemake may delete
# and repeat a block, and nothing is measured twice.


rule measure:
    input:
        plan=f"{RESULTS}/{{case}}/plan/{{phase}}-{{round}}.parquet",
        prepared=f"{RESULTS}/{{case}}/prepared/{{phase}}-{{round}}.json",
        profile=lambda wildcards: f"{RESULTS}/devices/{wildcards.case.split('/')[1]}.json",
    output:
        directory(f"{RESULTS}/{{case}}/runs/{{phase}}-{{round}}-{{block}}"),
    log:
        f"{RESULTS}/logs/{{case}}/measure-{{phase}}-{{round}}-{{block}}.log",
    resources:
        **PIPELINE.device_resources,
        machine=1,
    params:
        study=PIPELINE.study_file,
        store=f"{RESULTS}/store",
        spec=lambda wildcards: PIPELINE.case_spec(wildcards.case),
    shell:
        "knobscope measure --study {params.study} --case {wildcards.case} --plan {input.plan}"
        " --block {wildcards.phase}-{wildcards.round}-{wildcards.block} --profile {input.profile}"
        " --store {params.store} --out {output} 2>&1 | tee {log}"
