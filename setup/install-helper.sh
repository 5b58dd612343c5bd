#!/bin/sh
# Installs what knobscope runs as root for users who are not, root-owned, where they cannot change it: as root, once, and
# again when `knobscope doctor` says that it is of another version.
#   sudo setup/install-helper.sh            into /usr/local/lib/knobscope
#   sudo setup/install-helper.sh --remove   takes it away again
# Then allow it to a group of users; docs/reference/security.md has the lines for sudoers and says what they allow.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
target=/usr/local/lib/knobscope
[ "$(id -u)" = 0 ] || { echo "call it as root: sudo setup/install-helper.sh" >&2; exit 2; }
case ${1-} in
    --remove) rm -rf "$target"; exit 0 ;;
    "") ;;
    *) sed -n '2,6s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
part=$target.part
rm -rf "$part"
install -d -o root -g root -m 755 "$part" "$part/probes"
for file in "$here"/probes/*.py "$here"/probes/*.h "$here"/probes/*.c; do
    install -o root -g root -m 644 "$file" "$part/probes/"
done
install -o root -g root -m 755 "$here/setup/device-helper.py" "$part/device-helper"
rm -rf "$target"
mv "$part" "$target"
/usr/bin/python3 -I -m compileall -q "$target/probes"
echo "installed into $target; docs/reference/security.md says how to allow it"
