#!/usr/bin/env bash
# Runs tools/check in a root of another Debian release, with that release's ROCr, HIP and compilers.
# Started by `tools/check --stack NAME`. NAME is bookworm (Debian 12), trixie (13) or forky
# (testing).
#
# Needs root rights, debootstrap and about 8 GB. The root is made once and kept, with its packages
# and its build, in the folder UPTEMPO_STACKS (default ~/.cache/uptempo/stacks); remove
# UPTEMPO_STACKS/NAME for a new one. UPTEMPO_STACK_MIRROR names another mirror than debootstrap's.
set -euo pipefail
name=$1
fail() {
  echo "tools/check --stack: $*" >&2
  exit 1
}

case "$name" in
  bookworm | trixie | forky) suite=$name ;;
  *) echo "tools/check --stack: unknown release '$name'; use bookworm, trixie or forky." >&2; exit 2 ;;
esac
[ "$(id -u)" -eq 0 ] || fail "must run as root, because it mounts file systems and changes its root."
command -v debootstrap >/dev/null || fail "debootstrap is not installed; install the package debootstrap."
command -v git >/dev/null || fail "git is not installed; install the package git."
# The debootstrap of an older Debian does not know the name of today's testing.
if [ "$name" = forky ] && [ ! -e /usr/share/debootstrap/scripts/forky ]; then suite=testing; fi

stacks=$(realpath -m "${UPTEMPO_STACKS:-${XDG_CACHE_HOME:-$HOME/.cache}/uptempo/stacks}")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$stacks/$name
tree=$root/src/uptempo
mkdir -p "$stacks"

if [ ! -d "$root" ]; then
  echo "tools/check --stack: making $root with debootstrap"
  rm -rf "$root.part"
  debootstrap --variant=minbase "$suite" "$root.part" ${UPTEMPO_STACK_MIRROR:+"$UPTEMPO_STACK_MIRROR"} >"$stacks/$name.log" 2>&1 ||
    { tail -n 15 "$stacks/$name.log" >&2; fail "debootstrap could not make a root of $suite; see its message above, and check the network."; }
  mkdir -p "$root.part/src/uptempo"
  mv "$root.part" "$root"
fi
# Missing where the host resolves names without it.
if [ -e /etc/resolv.conf ]; then cp --remove-destination -L /etc/resolv.conf "$root/etc/resolv.conf"; fi

# The files that git tracks or would track, as they are now. The build stays, and files keep the time
# of their last change in this root, so that only what has changed is built again. Their own times
# would not do: a file that changes during a build may be older than the object of its last version.
next=$root/src/next
rm -rf "$next"
mkdir "$next"
git ls-files -z --cached --others --exclude-standard |
  while IFS= read -r -d '' file; do if [ -e "$file" ]; then printf '%s\0' "$file"; fi; done |
  tar --create --null --files-from=- | tar --extract --touch --no-same-owner --directory="$next"
find "$next" -type f -printf '%P\0' |
  while IFS= read -r -d '' file; do
    if cmp -s "$tree/$file" "$next/$file"; then touch --reference="$tree/$file" "$next/$file"; fi
  done
find "$tree" -mindepth 1 -maxdepth 1 ! -name 'build*' -exec rm -rf {} +
find "$next" -mindepth 1 -maxdepth 1 -exec mv -t "$tree" {} +
rmdir "$next"

# The mounts are in a namespace of their own and end with it.
environment=(HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 "TERM=${TERM:-dumb}")
for variable in http_proxy https_proxy no_proxy; do
  if [ -n "${!variable-}" ]; then environment+=("$variable=${!variable}"); fi
done
echo "tools/check --stack: running tools/check in $root"
unshare --mount --propagation private -- bash -euc '
  root=$1
  shift
  mount -t proc proc "$root/proc"
  mount -t sysfs sysfs "$root/sys"
  mount --rbind /dev "$root/dev"
  exec chroot "$root" env -i "$@" bash -c "cd /src/uptempo && exec tools/check"
' bash "$root" "${environment[@]}"
