#!/bin/sh
# Gets servers that no package of this system installs into .fleet (or KNOBSCOPE_FLEET), where specs look for them:
#   setup/fleet.sh trixie      Valkey 8, PostgreSQL 17, MariaDB 11.8, RocksDB 9.10 (from Debian 13)
#   setup/fleet.sh sid         MySQL 9, PostgreSQL 18 (from Debian unstable: whatever versions it has today)
#   setup/fleet.sh cassandra   Cassandra 5 (from Maven Central)
#   setup/fleet.sh wiredtiger  WiredTiger 11.3.1 with wtperf (from its source on PyPI; compiles for some minutes)
#   setup/fleet.sh roc-validator  checks RO-Crates, for a test (from PyPI), in a .venv of its own
#   setup/fleet.sh ferretdb    FerretDB 1.24.0, which speaks MongoDB's protocol and stores in SQLite; no MongoDB (a Go module)
#   setup/fleet.sh tpcds       rows and queries of TPC-DS: DuckDB 1.5.5 with its extension (from PyPI), in a .venv of its own
# Needs patchelf for suites, Maven and JDK 17 for Cassandra, and cmake, ninja-build, swig, gcc, g++ for WiredTiger,
# and Go 1.22 or newer for FerretDB.
# Packages of Debian are signed; jars and what comes from PyPI is compared with setup/checksums.
# Nothing outside that directory is changed. It cannot be moved afterwards: its path is part of the programs.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
fleet=${KNOBSCOPE_FLEET:-$here/.fleet}

need() { # need PROGRAM PACKAGE
    command -v "$1" >/dev/null || { echo "$1 is missing; install it: apt-get install $2" >&2; exit 1; }
}

# Unpacks packages of another Debian suite with all they depend on, the C library too; each program is then pointed at
# the loader and libraries beside it. An empty list of installed packages makes apt fetch all of them.
suite() { # suite SUITE PACKAGE...
    need patchelf patchelf
    suite=$1
    shift
    prefix=$fleet/$suite
    apt=$fleet/.apt-$suite
    mirror=$("$here/setup/debian-mirror.sh")
    mkdir -p "$prefix" "$apt/lists/partial" "$apt/cache/archives/partial"
    : >"$apt/status"
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" >"$apt/sources.list"
    printf '%s;\n' "Dir::Etc::sourcelist \"$apt/sources.list\"" 'Dir::Etc::sourceparts "-"' "Dir::State::lists \"$apt/lists\"" \
        "Dir::State::status \"$apt/status\"" "Dir::Cache \"$apt/cache\"" 'APT::Sandbox::User "root"' >"$apt/apt.conf"
    apt-get -qq -c "$apt/apt.conf" update
    apt-get -qq -y -c "$apt/apt.conf" --no-install-recommends --download-only install "$@"
    for deb in "$apt"/cache/archives/*.deb; do
        dpkg -x "$deb" "$prefix"
    done
    loader=$(ls "$prefix"/usr/lib64/ld-linux-x86-64.so.2 "$prefix"/lib64/ld-linux-x86-64.so.2 2>/dev/null | head -1)
    # An interpreter of its own instead of a wrapper: processes keep their names. RPATH, unlike RUNPATH, also serves what
    # the libraries themselves need.
    for program in "$prefix"/usr/sbin/* "$prefix"/usr/bin/* "$prefix"/usr/lib/postgresql/*/bin/*; do
        [ -f "$program" ] && [ ! -L "$program" ] && head -c4 "$program" | grep -q ELF || continue
        patchelf --set-interpreter "$loader" --force-rpath --set-rpath "$prefix/usr/lib/x86_64-linux-gnu" "$program" 2>/dev/null || true
    done
    rm -rf "$apt"
    chmod -R a+rX "$prefix"
}

cassandra() {
    need mvn maven
    mkdir -p "$fleet/cassandra"
    cat >"$fleet/cassandra/pom.xml" <<'POM'
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>knobscope</groupId>
  <artifactId>cassandra</artifactId>
  <version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.apache.cassandra</groupId>
      <artifactId>cassandra-all</artifactId>
      <version>5.0.4</version>
    </dependency>
  </dependencies>
</project>
POM
    mvn -q -B -f "$fleet/cassandra/pom.xml" dependency:copy-dependencies "-DoutputDirectory=$fleet/cassandra/lib"
    "$here/setup/check-jars.sh" "$fleet/cassandra/lib" "$here/setup/checksums/cassandra.sha256"
    chmod -R a+rX "$fleet/cassandra"
}

wiredtiger() {
    need swig swig
    need cmake cmake
    need ninja ninja-build
    need g++ g++
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    "$here/.venv/bin/python" -m pip download -q --no-deps --no-binary :all: --require-hashes -d "$work" \
        -r "$here/setup/checksums/wiredtiger.txt"
    tar xzf "$work"/wiredtiger-*.tar.gz -C "$work"
    cd "$work"/wiredtiger-*/
    # Whose waits are those of clients is known by the names of threads; wtperf gives them none.
    sed -i '/^worker(void/,/^}/s/^    thread = .*arg;$/&\n    pthread_setname_np(pthread_self(), "session");/' bench/wtperf/wtperf.c
    cmake -S . -B build -G Ninja -DENABLE_STATIC=1 -DENABLE_SHARED=0 -DWITH_PIC=1 -DENABLE_PYTHON=0 -DENABLE_LZ4=0 \
        -DENABLE_SNAPPY=0 -DENABLE_ZLIB=0 -DENABLE_ZSTD=0 -DHAVE_UNITTEST=0 -DENABLE_STRICT=0 >/dev/null
    nice -n 19 ninja -C build wtperf wt >/dev/null
    mkdir -p "$fleet/wiredtiger/bin"
    cp build/bench/wtperf/wtperf build/wt "$fleet/wiredtiger/bin/"
    chmod -R a+rX "$fleet/wiredtiger"
}

# NAME: what setup/checksums/NAME.txt lists, in a .venv of its own. TPC-DS needs another DuckDB than knobscope, since an
# extension belongs to one version; roc-validator needs another rich.
environment() {
    "$here/.venv/bin/python" -m venv "$fleet/$1"
    "$fleet/$1/bin/python" -m pip install -q --disable-pip-version-check --require-hashes -r "$here/setup/checksums/$1.txt"
    chmod -R a+rX "$fleet/$1"
}

# The Go checksum database vouches for the module and all that it needs.
ferretdb() {
    need go golang-go
    module=github.com/FerretDB/FerretDB@v1.24.0
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    go mod download "$module" # with -json, a failure would be a part of its answer
    source=$(go mod download -json "$module" | sed -n 's/^.*"Dir": "\(.*\)".*$/\1/p')
    cp -r "$source" "$work/source"
    chmod -R u+w "$work/source"
    cd "$work/source"
    echo "${module#*@}" >build/version/version.txt # without it the server does not start
    nice -n 19 go build -tags ferretdb_sqlite -o "$fleet/ferretdb/bin/ferretdb" ./cmd/ferretdb
    chmod -R a+rX "$fleet/ferretdb"
}

usage() { # the comment at the top
    sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0"
}

[ $# -gt 0 ] || { usage >&2; exit 2; }
unknown=""
for wanted in "$@"; do
    case $wanted in
        -h | --help) usage; exit 0 ;;
        trixie | sid | cassandra | wiredtiger | ferretdb | tpcds | roc-validator) ;;
        *) unknown="$unknown $wanted" ;;
    esac
done
[ -z "$unknown" ] || { echo "unknown:$unknown; expected trixie, sid, cassandra, wiredtiger, ferretdb, tpcds or roc-validator" >&2; exit 2; }
mkdir -p "$fleet"
for wanted in "$@"; do
    case $wanted in
        trixie) suite trixie valkey-server valkey-tools postgresql-17 mariadb-server-core mariadb-client-core rocksdb-tools ;;
        sid) suite sid mysql-server-core mysql-client-core postgresql-18 ;;
        cassandra) cassandra ;;
        wiredtiger) (wiredtiger) ;;
        ferretdb) (ferretdb) ;;
        tpcds | roc-validator) environment "$wanted" ;;
    esac
done
