# Instead of `select`, in a study that names a prior: the ranking of an earlier study, in the form of a fit.


rule models:
    output:
        f"{RESULTS}/{{case}}/fit/prior.json",
    log:
        f"{RESULTS}/logs/{{case}}/models.log",
    resources:
        machine=1,
    params:
        study=PIPELINE.study_file,
        spec=lambda wildcards: PIPELINE.prior_spec(wildcards.case),
    shell:
        "knobscope job --log {log:q} --seal {output:q} --"
        " models apply --study {params.study:q} --case {wildcards.case:q} --out {output:q}"
