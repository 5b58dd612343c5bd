# Stage 8: one page for people. `snakemake --report` shows in addition how the study was run.


rule report:
    input:
        database=f"{RESULTS}/study.duckdb",
        findings=f"{RESULTS}/confirmed.parquet",
    output:
        report(
            f"{RESULTS}/report.html", caption="captions/report.rst", category="Result"
        ),
    log:
        f"{RESULTS}/logs/report.log",
    params:
        study=PIPELINE.study_file,
    shell:
        "knobscope report --study {params.study} --database {input.database} --findings {input.findings}"
        " --out {output} 2>&1 | tee {log}"
