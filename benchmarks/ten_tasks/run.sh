#!/bin/bash
# Does the tasks of docs/evidence/ten-tasks.md in a fresh clone, as a new user would, and prints what each took.
#
#   benchmarks/ten_tasks/run.sh FOLDER [TASK ...]     as root; FOLDER is made, and stays for a look at the reports
#
# TASKs: setup first postgresql redb tarantool table trace export cluster crate (default: all, in this order).
# postgresql needs PostgreSQL 15, and uses FOLDER/disk-a and FOLDER/disk-b: mount drives there beforehand, or both are
# directories of one disk. redb needs cargo, tarantool the package tarantool.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
folder=$(cd "$1" && pwd)
shift
clone=$folder/knobscope
export PATH=$folder/redb/target/release:$PATH

study() { .venv/bin/snakemake --cores all --quiet rules --config "study=specs/studies/$1.yaml"; }

setup() { { test -d "$clone" || git clone -q "$here/../.." "$clone"; } && make -C "$clone" setup; }
first() { make study; }
postgresql() { mkdir -p "$folder"/disk-{a,b} && cp -a /usr/lib/postgresql/15/. "$folder/pgsql" && study my-postgresql; }
redb() { cp -r "$here/redb" "$folder/" && cargo build -q --release --manifest-path "$folder/redb/Cargo.toml" && study redb; }
tarantool() { cp "$here/tarantool.lua" "$folder/" && study tarantool; }
table() { # two settings, of which one matters
    awk 'BEGIN { srand(1); print "cache,flush,tps"; for (i = 0; i < 200; i++) { c = int(rand() * 8); f = int(rand() * 3)
        print c "," f "," 1000 - 300 * f + 5 * c + 20 * rand() } }' >"$folder/table.csv" &&
    .venv/bin/knobscope rank "$folder/table.csv" --response tps
}
trace() { # sequential writes of 64 KiB with a read now and then
    awk 'BEGIN { print "ts_ns,lba,len_sectors,op,lat_ns"; for (i = 0; i < 20000; i++)
        printf "%.0f,%d,128,%s,400000\n", i * 1000000, i * 128, i % 9 ? "W" : "R" }' >"$folder/trace.csv" &&
    .venv/bin/knobscope trace "$folder/trace.csv"
}
export_and_back() {
    rm -f "$folder"/{space.json,tuner.db,tuned.csv}
    .venv/bin/knobscope export quickstart-drives --case sqlite/sata-ssd/ycsb-a --to optuna --top 3 --out "$folder/space.json" &&
    .venv/bin/python "$here/tune.py" "$folder/space.json" "$folder/tuner.db" &&
    .venv/bin/knobscope import --from optuna "$folder/tuner.db" --out "$folder/tuned.csv" &&
    .venv/bin/knobscope rank "$folder/tuned.csv" --response value --factors journal_mode,temp_store,page_size
}
cluster() { .venv/bin/snakemake -n --quiet all --profile profiles/slurm --config study=specs/studies/postgresql-io.yaml; }
crate() {
    rm -rf "$folder/crate" && mkdir "$folder/crate" &&
    .venv/bin/knobscope crate quickstart-drives --author "A. Person" --out "$folder/crate/study.crate.zip" &&
    (cd "$folder/crate" && "$clone/.venv/bin/knobscope" crate --open study.crate.zip)
}

[ $# -gt 0 ] || set -- setup first postgresql redb tarantool table trace export cluster crate
for task in "$@"; do
    begin=$(date +%s)
    if [ "$task" != setup ]; then
        cp -r "$here/specs" "$clone/"
        sed -i "s|HERE|$folder|" "$clone"/specs/{dbms/my-build,generators/tarantool-bench,devices/disk-a,devices/disk-b}.yaml
        cd "$clone"
    fi
    ${task/export/export_and_back} >"$folder/$task.log" 2>&1 && result=done || result=FAILED
    echo "$task: $result, $(($(date +%s) - begin)) s; the output: $folder/$task.log"
done
