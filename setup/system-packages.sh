#!/bin/sh
# Installs the system packages that are missing (Debian, Ubuntu): as root, or through sudo. Changes nothing when all are there.
#   setup/system-packages.sh [COMMAND...]    further commands, of packages of the same name; sshd is of openssh-server
set -eu
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

missing=""
need() { # need PACKAGE COMMAND...: the package is missing when the command fails
    package=$1
    shift
    "$@" >/dev/null 2>&1 || missing="$missing $package"
}

need python3-venv "${PYTHON:-python3}" -c 'import ensurepip'
need python3-bpfcc /usr/bin/python3 -c 'import bcc'
need fio fio --version
need gcc cc --version
need libc6-dev sh -c 'echo "#include <stdio.h>" | cc -E -'
need pkg-config pkg-config --version
need libfuse3-dev pkg-config --exists fuse3
need openjdk-17-jdk-headless javac -version
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
        *) need "$name" "$name" --version ;;
    esac
done

as_root=""
[ "$(id -u)" = 0 ] || as_root="sudo -n"

if [ -n "$missing" ]; then
    if ! command -v apt-get >/dev/null || { [ -n "$as_root" ] && ! sudo -n true 2>/dev/null; }; then
        echo "please install these packages (root or password-less sudo is needed to do it here):$missing" >&2
        exit 1
    fi
    echo "installing:$missing"
    # Packages must not start daemons of their own: knobscope starts the servers it measures itself.
    policy=/usr/sbin/policy-rc.d
    if [ ! -e $policy ]; then
        printf '#!/bin/sh\nexit 101\n' | $as_root tee $policy >/dev/null
        $as_root chmod +x $policy
        trap '$as_root rm -f $policy' EXIT
    fi
    $as_root apt-get update -qq
    # shellcheck disable=SC2086  # a list of packages
    # A new machine installs updates by itself at first, with the lock in its hands.
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        -o DPkg::Lock::Timeout=300 $missing >/dev/null
    # Wanted for its program alone, which tests start for themselves: it must not let people in after the next boot.
    case " $missing " in *" openssh-server "*) $as_root systemctl disable -q ssh.service ssh.socket 2>/dev/null || true ;; esac
fi

# Servers refuse to run as root, and should: they get a user of their own.
if [ "$(id -u)" = 0 ] && ! id knobscope >/dev/null 2>&1; then
    useradd --system --user-group --no-create-home --shell /usr/sbin/nologin knobscope
fi
