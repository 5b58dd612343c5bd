#!/bin/sh
# Prints the address of a Debian mirror: DEBIAN_MIRROR, else the one that this machine's own packages come from.
set -eu
mirror=${DEBIAN_MIRROR:-}
if [ -z "$mirror" ] && [ "$(. /etc/os-release && echo "$ID")" = debian ]; then
    mirror=$(awk '/^URIs:/ {print $2; exit}' /etc/apt/sources.list.d/debian.sources 2>/dev/null || true)
    [ -n "$mirror" ] || mirror=$(sed -n 's/^deb \(\[[^]]*\] \)\{0,1\}\([a-z]*:[^ ]*\) .*/\2/p' /etc/apt/sources.list 2>/dev/null | head -1)
fi
[ -n "$mirror" ] || { echo "no Debian mirror is known here; name one: DEBIAN_MIRROR=http://HOST/debian" >&2; exit 1; }
[ -e /usr/share/keyrings/debian-archive-keyring.gpg ] || { echo "Debian's keys are missing; install them: apt-get install debian-archive-keyring" >&2; exit 1; }
echo "$mirror"
