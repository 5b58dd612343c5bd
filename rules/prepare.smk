# A loaded data directory for every load-time setting of a round.


rule prepare:
    input:
        f"{RESULTS}/{{case}}/plan/{{phase}}-{{round}}.parquet",
    output:
        f"{RESULTS}/{{case}}/prepared/{{phase}}-{{round}}.json",
    log:
        f"{RESULTS}/logs/{{case}}/prepare-{{phase}}-{{round}}.log",
    resources:
        **PIPELINE.device_resources,
        machine=1,
    params:
        study=PIPELINE.study_file,
        spec=lambda wildcards: PIPELINE.data_spec(wildcards.case),
    shell:
        "knobscope job --log {log:q} --seal {output:q} --"
        " prepare --study {params.study:q} --case {wildcards.case:q} --plan {input:q} --out {output:q}"
