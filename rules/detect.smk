# All tables into one DuckDB file; the effects of single knobs; the mismatch rules as queries.


rule detect:
    input:
        runs=lambda wildcards: PIPELINE.all_runs(checkpoints),
        plans=lambda wildcards: PIPELINE.all_plans(checkpoints),
        fits=lambda wildcards: PIPELINE.all_fits(checkpoints),
        devices=[f"{RESULTS}/devices/{device}.json" for device in PIPELINE.devices],
        rules=PIPELINE.rule_files,
    output:
        temp(f"{RESULTS}/detected.duckdb"),
    log:
        f"{RESULTS}/logs/detect.log",
    params:
        study=PIPELINE.study_file,
        spec=PIPELINE.detect_spec,
    shell:
        "knobscope job --log {log:q} --seal {output:q} --"
        " detect --study {params.study:q} --runs {input.runs:q} --plans {input.plans:q} --fits {input.fits:q}"
        " --devices {input.devices:q} --out {output:q}"
