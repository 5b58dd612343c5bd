# Stage 7: fio repeats the I/O pattern behind a mismatch and changes one factor: does the named cause show without DBMS?
# It writes the study's database, which no rule before it does and none after it changes.


rule confirm:
    input:
        PIPELINE.judged_database,
    output:
        f"{RESULTS}/study.duckdb",
    log:
        f"{RESULTS}/logs/confirm.log",
    resources:
        machine=1,
    params:
        study=PIPELINE.study_file,
    shell:
        "knobscope confirm --study {params.study:q} --database {input:q} --out {output:q} 2>&1 | tee {log:q}"
