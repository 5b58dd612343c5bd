# The DBMS runs again with the values of mismatches. A mismatch whose effect does not reproduce is refuted. On what-if
# devices, which differ from a modelled device in one property, the cause is the property whose change removes the effect:
# by default only the property that a rule blames is changed. Runs lie in the store, like all. A job for each device, where
# that device is.


rule remeasure:
    input:
        database=f"{RESULTS}/detected.duckdb",
        devices=[f"{RESULTS}/devices/{device}.json" for device in PIPELINE.devices],
    output:
        temp(f"{RESULTS}/explained/{{device}}.json"),
    log:
        f"{RESULTS}/logs/remeasure-{{device}}.log",
    resources:
        **PIPELINE.all_devices,
        machine=1,
    params:
        study=PIPELINE.study_file,
        store=f"{RESULTS}/store",
        spec=PIPELINE.remeasure_spec,
    shell:
        "knobscope job --log {log:q} --"
        " remeasure --study {params.study:q} --database {input.database:q} --device {wildcards.device:q}"
        " --devices {input.devices:q} --store {params.store:q} --out {output:q}"


rule remeasure_all:
    input:
        database=f"{RESULTS}/detected.duckdb",
        explained=[
            f"{RESULTS}/explained/{device}.json"
            for device in PIPELINE.specs.study.devices
        ],
    output:
        temp(f"{RESULTS}/explained.duckdb"),
    log:
        f"{RESULTS}/logs/remeasure-all.log",
    params:
        study=PIPELINE.study_file,
    shell:
        "knobscope job --log {log:q} --seal {output:q} --"
        " remeasure --study {params.study:q} --database {input.database:q} --remeasured {input.explained:q}"
        " --out {output:q}"
