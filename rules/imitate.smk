# fio imitates the I/O pattern behind a mismatch and changes one factor: does the named cause show without DBMS?
# A job for each device, where that device is; then the study's database is written, which no rule before does and none
# after it changes.


rule imitate:
    input:
        PIPELINE.judged_database,
    output:
        temp(f"{RESULTS}/confirmed/{{device}}.json"),
    log:
        f"{RESULTS}/logs/imitate-{{device}}.log",
    resources:
        machine=1,
    params:
        study=PIPELINE.study_file,
    shell:
        "knobscope job --log {log:q} --"
        " imitate --study {params.study:q} --database {input:q} --device {wildcards.device:q} --out {output:q}"


rule imitate_all:
    input:
        database=PIPELINE.judged_database,
        confirmed=[
            f"{RESULTS}/confirmed/{device}.json"
            for device in PIPELINE.specs.study.devices
        ],
    output:
        f"{RESULTS}/study.duckdb",
    log:
        f"{RESULTS}/logs/imitate-all.log",
    params:
        study=PIPELINE.study_file,
    shell:
        "knobscope job --log {log:q} --seal {output:q} --"
        " imitate --study {params.study:q} --database {input.database:q} --imitated {input.confirmed:q}"
        " --out {output:q}"
