# What the device likes, measured by fio: write unit, flush, queue depth, random/sequential gap.


rule characterise:
    output:
        f"{RESULTS}/devices/{{device}}.json",
    log:
        f"{RESULTS}/logs/characterise-{{device}}.log",
    resources:
        machine=1,
    params:
        study=PIPELINE.study_file,
        spec=lambda wildcards: PIPELINE.device_spec(wildcards.device),
    shell:
        "knobscope job --log {log:q} --seal {output:q} --"
        " characterise --study {params.study:q} --device {wildcards.device:q} --out {output:q}"
