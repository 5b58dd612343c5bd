# A block of runs on one device. Finished runs lie in the store, which is no rule's output: Snakemake may delete
# and repeat a block, and nothing is measured twice.


rule measure:
    input:
        plan=f"{RESULTS}/{{case}}/plan/{{phase}}-{{round}}.parquet",
        prepared=f"{RESULTS}/{{case}}/prepared/{{phase}}-{{round}}.json",
        profiles=lambda wildcards: PIPELINE.profiles(wildcards.case),
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
        spec=lambda wildcards: PIPELINE.run_spec(wildcards.case, wildcards.phase),
    shell:
        "knobscope job --log {log:q} --seal {output:q} --"
        " measure --study {params.study:q} --case {wildcards.case:q} --plan {input.plan:q}"
        " --block {wildcards.phase:q}-{wildcards.round:q}-{wildcards.block:q} --prepared {input.prepared:q}"
        " --profile {input.profiles[0]:q} --store {params.store:q} --out {output:q}"
