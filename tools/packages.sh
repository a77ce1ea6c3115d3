#!/usr/bin/env bash
# Tries Debian packages of Uptempo: lintian must find no error, and test/packages/use.sh must install,
# use and remove them in a bare root of this machine's Debian release. `tools/check packages` starts
# it:
#   tools/packages.sh FOLDER    # with the .deb files
# Needs root rights, debootstrap, lintian and about 3 GB in TMPDIR, which are free again at its end.
set -euo pipefail
fail() {
  echo "tools/packages.sh: $*" >&2
  exit 1
}
packages=$(realpath "$1")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. tools/root.sh
needs_root_rights lintian

lintian --allow-root --fail-on error "$packages"/*.deb || fail "lintian has found errors, see above."

folder=$(mktemp -d)
trap 'rm -rf --one-file-system "$folder"' EXIT
release=$(. /etc/os-release && echo "${VERSION_CODENAME-}")
echo "tools/packages.sh: making a bare root of $release with debootstrap"
make_root "$release" "$folder/root"
mkdir -p "$folder/root/src/packages"
cp "$packages"/*.deb "$folder/root/src/packages"
cp --parents test/packages/use.sh tools/manual/outputs/saxpy.txt "$folder/root/src"
in_root "$folder/root" bash /src/test/packages/use.sh
echo "tools/packages.sh: the packages can be installed, used and removed"
