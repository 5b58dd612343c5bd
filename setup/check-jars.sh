#!/bin/sh
# Compares jars that Maven brought with their known checksums: every jar has to be listed, and every listed one be there.
#   setup/check-jars.sh FOLDER CHECKSUMS            exit code 1 and the names of those that differ
#   setup/check-jars.sh --write FOLDER CHECKSUMS    writes the list anew, after a change of versions
set -eu
write=""
if [ "$1" = --write ]; then
    write=yes
    shift
fi
list=$(cd "$(dirname "$2")" && pwd)/$(basename "$2")
cd "$1"
found=$(find . -name '*.jar' ! -name 'knobscope-*.jar' | LC_ALL=C sort)
[ -n "$found" ] || { echo "$1 holds no jar" >&2; exit 1; }
if [ -n "$write" ]; then
    echo "$found" | xargs sha256sum >"$list"
    exit
fi
listed=$(cut -c67- "$list" | LC_ALL=C sort)
if [ "$found" != "$listed" ]; then
    echo "$1 holds other jars than $list lists; setup/check-jars.sh --write makes a new list:" >&2
    printf '%s\n' "$found" "$listed" | LC_ALL=C sort | uniq -u >&2
    exit 1
fi
sha256sum --quiet --strict --check "$list" >&2
