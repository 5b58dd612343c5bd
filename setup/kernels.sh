#!/bin/sh
# Gets kernels of Debian's suites into .kernels (or KNOBSCOPE_KERNELS), for `make test-kernels`: nothing else is changed.
#   setup/kernels.sh [SUITE...]    default: bookworm (6.1), trixie (6.12), sid and experimental (the newest two)
#   UBUNTU_MIRROR=http://HOST/ubuntu setup/kernels.sh jammy    Ubuntu's 5.15, its keys from Debian 13; noble: 6.8
# Leaves a directory per kernel release, with vmlinuz and the modules that the tests need.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
kernels=${KNOBSCOPE_KERNELS:-$here/.kernels}

missing=""
need() { # need PACKAGE COMMAND...: the package is missing when the command fails
    package=$1
    shift
    "$@" >/dev/null 2>&1 || missing="$missing $package"
}
PATH=$PATH:/usr/sbin:/sbin
need qemu-system-x86 qemu-system-x86_64 --version
need busybox-static sh -c 'test -x /bin/busybox && ! ldd /bin/busybox'
need cpio cpio --version
need kmod modprobe --version
need zstd zstd --version
need lvm2 sh -c 'command -v lvcreate'
need mdadm sh -c 'command -v mdadm'
need bcache-tools sh -c 'command -v make-bcache'
need dmsetup sh -c 'command -v dmsetup'
[ -z "$missing" ] || { echo "please install these packages, which make test-kernels needs: apt-get install$missing" >&2; exit 1; }

mirror=$("$here/setup/debian-mirror.sh")

# Lets apt know one archive alone, with no package installed; sets `apt` to its directory.
open_archive() { # open_archive NAME KEYRING URL SUITE...
    apt=$kernels/.apt-$1
    keyring=$2 url=$3
    shift 3
    rm -rf "$apt"  # of a call that failed
    mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
    : >"$apt/status"
    for suite in "$@"; do echo "deb [signed-by=$keyring] $url $suite main"; done >"$apt/sources.list"
    printf '%s;\n' "Dir::Etc::sourcelist \"$apt/sources.list\"" 'Dir::Etc::sourceparts "-"' "Dir::State::lists \"$apt/lists\"" \
        "Dir::State::status \"$apt/status\"" "Dir::Cache \"$apt/cache\"" 'APT::Sandbox::User "root"' >"$apt/apt.conf"
    apt-get -qq -c "$apt/apt.conf" update
}

get_ubuntu_keys() { # prints a keyring; Debian signs the package that has it
    open_archive keys /usr/share/keyrings/debian-archive-keyring.gpg "$mirror" trixie
    (cd "$apt" && apt-get -qq -c "$apt/apt.conf" download ubuntu-keyring)
    dpkg-deb -x "$apt"/*.deb "$apt/tree"
    cp "$apt/tree/usr/share/keyrings/ubuntu-archive-keyring.gpg" "$kernels/ubuntu.gpg"
    rm -rf "$apt"
    echo "$kernels/ubuntu.gpg"
}

fetch() { # fetch SUITE: the image package that the suite's metapackage stands for
    case $1 in
        jammy | noble)
            [ -n "${UBUNTU_MIRROR:-}" ] || { echo "no Ubuntu mirror is known here; name one: UBUNTU_MIRROR=http://HOST/ubuntu" >&2; exit 1; }
            keys=$(get_ubuntu_keys)
            open_archive "$1" "$keys" "$UBUNTU_MIRROR" "$1" "$1-updates" "$1-security"
            meta=linux-image-generic ;;
        *)
            open_archive "$1" /usr/share/keyrings/debian-archive-keyring.gpg "$mirror" "$1"
            meta=linux-image-amd64 ;;
    esac
    package=$(apt-cache -c "$apt/apt.conf" depends $meta | awk '/Depends: linux-image-[0-9]/ {print $2; exit}')
    [ -n "$package" ] || { echo "$1 has no $meta" >&2; exit 1; }
    # The kernel and its modules may be packages of their own.
    parts=$(apt-cache -c "$apt/apt.conf" depends "$package" | awk '/Depends: linux-(binary|modules)-[0-9]/ {print $2}')
    (cd "$apt" && apt-get -qq -c "$apt/apt.conf" download "$package" $parts) # shellcheck disable=SC2086  # a list of packages
    for deb in "$apt"/*.deb; do dpkg-deb -x "$deb" "$apt/tree"; done
    image=$(find "$apt/tree" -name 'vmlinuz*' -type f | head -1)
    modules=$(find "$apt/tree" -type d -path '*/lib/modules/*' -prune | head -1)
    release=$(basename "$modules")
    rm -rf "${kernels:?}/$release"
    mkdir -p "$kernels/$release/lib/modules"
    mv "$image" "$kernels/$release/vmlinuz"
    mv "$modules" "$kernels/$release/lib/modules/$release"
    depmod -b "$kernels/$release" "$release"
    rm -rf "$apt"
    echo "$release"
}

[ $# -gt 0 ] || set -- bookworm trixie sid experimental
mkdir -p "$kernels"
for suite in "$@"; do fetch "$suite"; done
