#!/bin/sh
# Installs DBMSs that the distribution itself does not have, each into a folder of its own below /opt/knobscope, where
# the specs look for them: setup/fleet.sh [mysql|postgresql18|valkey|cassandra|wiredtiger]... (all when none is named).
# Root, Debian; changes nothing that is there already. Remove one with `rm -r /opt/knobscope/NAME`.
#
# mysql, postgresql18 and valkey come from Debian's unstable suite, with every library down to libc, and run from their
# folder: nothing of it touches the system. Versions move with that suite; knobscope records the one it finds.
set -eu
ROOT=${KNOBSCOPE_FLEET:-/opt/knobscope}
WIREDTIGER=11.3.1
CASSANDRA=5.0.4

[ "$(id -u)" = 0 ] || { echo "setup/fleet.sh needs root: it installs into $ROOT" >&2; exit 1; }

tools() { # tools PACKAGE...
    dpkg -s "$@" >/dev/null 2>&1 && return
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

mirror() { # the Debian mirror that this machine uses
    # shellcheck disable=SC2016  # apt's own placeholders
    apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' | grep -v security | head -1
}

from_unstable() { # from_unstable FOLDER PACKAGE...: unpack the packages with all they need, and point them at each other
    prefix=$1
    shift
    tools patchelf debian-archive-keyring
    apt=$(mktemp -d)
    mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$prefix.part"
    : >"$apt/status" # no package counts as installed, so all are fetched
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $(mirror) sid main" >"$apt/sources.list"
    printf '%s;\n' "Dir::Etc::sourcelist \"$apt/sources.list\"" 'Dir::Etc::sourceparts "-"' \
        "Dir::State::lists \"$apt/lists\"" "Dir::State::status \"$apt/status\"" "Dir::Cache \"$apt/cache\"" \
        'APT::Sandbox::User "root"' >"$apt/apt.conf"
    apt-get -qq -c "$apt/apt.conf" update
    apt-get -qq -y -c "$apt/apt.conf" --no-install-recommends --download-only install "$@" >/dev/null
    for package in "$apt"/cache/archives/*.deb; do dpkg -x "$package" "$prefix.part"; done
    rm -r "$apt"
    link_together "$prefix.part" "$prefix"
    chmod -R a+rX "$prefix.part" # the servers run as another user
    mv "$prefix.part" "$prefix"
}

link_together() { # link_together FOLDER LATER: every program in FOLDER uses the libraries of its own, once it is called LATER
    # DT_RPATH (--force-rpath) serves the libraries' own needs too, DT_RUNPATH does not. Programs keep their names, unlike
    # under `ld.so PROGRAM`, and probes see them.
    loader=$(cd "$1" && ls usr/lib64/ld-linux-* lib64/ld-linux-* usr/lib/ld-linux-aarch64* 2>/dev/null | head -1)
    libraries=$2/usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH 2>/dev/null || echo "$(uname -m)-linux-gnu")
    for program in "$1"/usr/sbin/* "$1"/usr/bin/* "$1"/usr/lib/postgresql/*/bin/*; do
        if [ -f "$program" ] && [ ! -L "$program" ] && head -c4 "$program" | grep -q ELF; then
            patchelf --set-interpreter "$2/$loader" --force-rpath --set-rpath "$libraries" "$program" 2>/dev/null || true # static ones
        fi
    done
}

mysql() { from_unstable "$ROOT/mysql" mysql-server-core mysql-client-core; }
postgresql18() { from_unstable "$ROOT/postgresql18" postgresql-18; }
valkey() { from_unstable "$ROOT/valkey" valkey-server valkey-tools; }

cassandra() { # its jars
    tools openjdk-17-jdk-headless maven
    build=$(mktemp -d)
    cat >"$build/pom.xml" <<-POM
	<project xmlns="http://maven.apache.org/POM/4.0.0">
	  <modelVersion>4.0.0</modelVersion>
	  <groupId>knobscope</groupId><artifactId>cassandra-server</artifactId><version>1</version>
	  <dependencies>
	    <dependency><groupId>org.apache.cassandra</groupId><artifactId>cassandra-all</artifactId><version>$CASSANDRA</version></dependency>
	  </dependencies>
	</project>
	POM
    mvn -q -B -f "$build/pom.xml" dependency:copy-dependencies -DoutputDirectory="$ROOT/cassandra.part/lib"
    rm -r "$build"
    chmod -R a+rX "$ROOT/cassandra.part"
    mv "$ROOT/cassandra.part" "$ROOT/cassandra"
}

wiredtiger() { # built from source: the distribution's package has no benchmark
    tools python3-pip python3-venv cmake ninja-build gcc g++
    build=$(mktemp -d)
    (
        cd "$build"
        # Its build system wants the source only: `download` would try to build it.
        python3 -m venv venv
        venv/bin/pip install -q --disable-pip-version-check setuptools wheel
        venv/bin/pip download -q --disable-pip-version-check --no-deps --no-build-isolation --no-binary :all: "wiredtiger==$WIREDTIGER"
        tar xzf "wiredtiger-$WIREDTIGER.tar.gz"
        cd "wiredtiger-$WIREDTIGER"
        cmake -S . -B b -G Ninja --log-level=ERROR -DENABLE_STATIC=1 -DENABLE_SHARED=0 -DWITH_PIC=1 -DENABLE_PYTHON=0 -DENABLE_LZ4=0 \
            -DENABLE_SNAPPY=0 -DENABLE_ZLIB=0 -DENABLE_ZSTD=0 -DHAVE_UNITTEST=0 -DENABLE_STRICT=0 >/dev/null
        ninja -C b wtperf wt >/dev/null
        mkdir -p "$ROOT/wiredtiger.part/bin" "$ROOT/wiredtiger.part/dist"
        cp b/bench/wtperf/wtperf b/wt "$ROOT/wiredtiger.part/bin/"
        cp dist/api_data.py "$ROOT/wiredtiger.part/dist/" # the catalogue of its settings
    )
    rm -r "$build"
    chmod -R a+rX "$ROOT/wiredtiger.part"
    mv "$ROOT/wiredtiger.part" "$ROOT/wiredtiger"
}

mkdir -p "$ROOT"
[ $# -gt 0 ] || set -- mysql postgresql18 valkey cassandra wiredtiger
for name in "$@"; do
    case $name in
    mysql | postgresql18 | valkey | cassandra | wiredtiger) ;;
    *)
        echo "setup/fleet.sh: expected mysql, postgresql18, valkey, cassandra or wiredtiger, found $name" >&2
        exit 2
        ;;
    esac
    [ -d "$ROOT/$name" ] && continue
    echo "installing $name into $ROOT/$name"
    rm -rf "$ROOT/$name.part"
    "$name"
done
