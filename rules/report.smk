# One page for people. `snakemake --report` shows in addition how the study was run.


rule report:
    input:
        f"{RESULTS}/study.duckdb",
    output:
        report(
            f"{RESULTS}/report.html", caption="captions/report.rst", category="Result"
        ),
    log:
        f"{RESULTS}/logs/report.log",
    params:
        study=PIPELINE.study_file,
        spec=PIPELINE.report_spec,
    shell:
        "knobscope job --log {log:q} --seal {output:q} --"
        " report --study {params.study:q} --database {input:q} --out {output:q}"
