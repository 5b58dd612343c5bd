#!/bin/sh
# Installs the system packages that are missing (Debian, Ubuntu): as root, or through sudo. Changes nothing when all are there.
#   setup/system-packages.sh [COMMAND...]    further commands, of packages of the same name; sshd is of openssh-server,
#                                            and slapd comes with the clients of ldap-utils
set -eu
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

missing=""
need() { # need PACKAGE COMMAND...: the package is missing when the command fails
    package=$1
    shift
    "$@" >/dev/null 2>&1 || missing="$missing $package"
}

need python3-venv "${PYTHON:-python3}" -c 'import ensurepip'
# A package that Snakemake needs (immutables) has no wheel for Python 3.14 yet.
need python3-dev "${PYTHON:-python3}" -c 'import os, sys, sysconfig as s
sys.exit(sys.version_info >= (3, 14) and not os.path.exists(s.get_path("include") + "/Python.h"))'
need python3-bpfcc /usr/bin/python3 -c 'import bcc'
need fio fio --version
need gcc cc --version
need libc6-dev sh -c 'echo "#include <stdio.h>" | cc -E -'
need pkg-config pkg-config --version
need libfuse3-dev pkg-config --exists fuse3
need fuse3 fusermount3 --version
need openjdk-17-jdk-headless javac --release 17 -version
need maven mvn --version
need openssh-client ssh -V
need libgomp1 sh -c 'ldconfig -p | grep -q libgomp.so.1'
need e2fsprogs sh -c 'command -v mkfs.ext4'
need xfsprogs sh -c 'command -v mkfs.xfs'
need btrfs-progs sh -c 'command -v mkfs.btrfs'
need redis-server redis-server --version
need redis-tools redis-cli --version
need sysbench sysbench --version
need mariadb-server-core sh -c 'command -v mariadbd && command -v mariadb-install-db'
need mariadb-client-core mariadb --version
need postgresql sh -c 'ls /usr/lib/postgresql/*/bin/postgres'
for name; do
    case $name in
        sshd) need openssh-server sh -c 'command -v sshd' ;;
        slapd)
            need slapd sh -c 'command -v slapd'
            need ldap-utils sh -c 'command -v ldapadd'
            ;;
        *) need "$name" "$name" --version ;;
    esac
done

as_root=""
[ "$(id -u)" = 0 ] || as_root="sudo -n"

policy=/usr/sbin/policy-rc.d
tidy() { # also after a signal, a failure of apt, or a call that was killed
    ! grep -qs 'of knobscope' $policy || $as_root rm -f $policy || true
    # Wanted for their programs alone, which are started where they are needed: after the next boot none must run.
    for pair in openssh-server:ssh.service openssh-server:ssh.socket redis-server:redis-server.service postgresql:postgresql.service slapd:slapd.service; do
        case " $missing " in *" ${pair%:*} "*) $as_root systemctl disable -q "${pair#*:}" 2>/dev/null || true ;; esac
    done
}
trap tidy EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

if [ -n "$missing" ]; then
    if ! command -v apt-get >/dev/null || { [ -n "$as_root" ] && ! sudo -n true 2>/dev/null; }; then
        echo "please install these packages (root or password-less sudo is needed to do it here):$missing" >&2
        exit 1
    fi
    echo "installing:$missing"
    # Packages must not start daemons of their own: knobscope starts the servers it measures itself.
    if [ ! -e $policy ]; then
        printf '#!/bin/sh\n# of knobscope, until its packages are installed\nexit 101\n' | $as_root tee $policy >/dev/null
        $as_root chmod +x $policy
    fi
    # A new machine installs updates by itself at first, with the locks in its hands.
    tries=0
    until problem=$($as_root apt-get update -qq 2>&1); do
        tries=$((tries + 1))
        case $problem in *lock*) [ $tries -lt 60 ] && sleep 5 && continue ;; esac
        echo "$problem" >&2
        exit 1
    done
    # Newer releases have other versions of the JDK, which compile for 17, too.
    apt-cache show openjdk-17-jdk-headless >/dev/null 2>&1 ||
        missing=$(echo "$missing" | sed 's/openjdk-17-jdk-headless/openjdk-21-jdk-headless/')
    # shellcheck disable=SC2086  # a list of packages
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        -o DPkg::Lock::Timeout=300 $missing >/dev/null
fi

# Servers refuse to run as root, and should: they get a user of their own.
if [ "$(id -u)" = 0 ] && ! id knobscope >/dev/null 2>&1; then
    useradd --system --user-group --no-create-home --shell /usr/sbin/nologin knobscope
fi
