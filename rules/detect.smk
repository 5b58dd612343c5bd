# Stage 6: all tables into one DuckDB file; the effects of single knobs; the mismatch rules as queries.


rule detect:
    input:
        runs=lambda wildcards: PIPELINE.all_runs(checkpoints),
        plans=lambda wildcards: PIPELINE.all_plans(checkpoints),
        fits=lambda wildcards: PIPELINE.all_fits(checkpoints),
        devices=[f"{RESULTS}/devices/{device}.json" for device in PIPELINE.devices],
        rules=PIPELINE.rule_files,
    output:
        database=f"{RESULTS}/study.duckdb",
        findings=f"{RESULTS}/findings.parquet",
    log:
        f"{RESULTS}/logs/detect.log",
    params:
        study=PIPELINE.study_file,
        rules=lambda wildcards, input: input.rules[0].rpartition("/")[0],
        spec=PIPELINE.detect_spec,
    shell:
        "knobscope detect --study {params.study} --runs {input.runs} --plans {input.plans} --fits {input.fits}"
        " --devices {input.devices} --rules {params.rules} --database {output.database} --out {output.findings} 2>&1 | tee {log}"
