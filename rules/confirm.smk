# Stage 7: fio repeats the I/O pattern behind a mismatch and changes one factor: does the named cause show without DBMS?


rule confirm:
    input:
        database=f"{RESULTS}/study.duckdb",
        findings=f"{RESULTS}/findings.parquet",
    output:
        f"{RESULTS}/confirmed.parquet",
    log:
        f"{RESULTS}/logs/confirm.log",
    resources:
        machine=1,
    params:
        study=PIPELINE.study_file,
    shell:
        "knobscope confirm --study {params.study} --database {input.database} --findings {input.findings}"
        " --out {output} 2>&1 | tee {log}"
