#!/usr/bin/env bash
# Runs tools/check in a root of another Debian release, with that release's ROCr, HIP and compilers.
# Started by `tools/check --stack NAME [ARGUMENT...]`, with these arguments. NAME is bookworm (Debian
# 12), trixie (13), forky (testing), or rocm7: testing, with ROCr 7 in place of its own.
#
# For rocm7, UPTEMPO_ROCM_SYSTEMS names a checkout of ROCm/rocm-systems, of which its
# projects/rocr-runtime is built, once. HIP stays Debian's, which calls ROCr by its C interface.
#
# Needs root rights, debootstrap and about 8 GB. The root is made once and kept, with its packages
# and its build, in the folder UPTEMPO_STACKS (default ~/.cache/uptempo/stacks); remove
# UPTEMPO_STACKS/NAME for a new one. UPTEMPO_STACK_MIRROR names another mirror than debootstrap's.
set -euo pipefail
name=$1
shift
fail() {
  echo "tools/check --stack: $*" >&2
  exit 1
}

case "$name" in
  bookworm | trixie | forky) release=$name ;;
  rocm7) release=forky ;;
  *) echo "tools/check --stack: unknown stack '$name'; use bookworm, trixie, forky or rocm7." >&2; exit 2 ;;
esac
. "$(dirname "${BASH_SOURCE[0]}")/root.sh"
needs_root_rights git

systems=$(realpath -m "${UPTEMPO_ROCM_SYSTEMS:-.}")
stacks=$(realpath -m "${UPTEMPO_STACKS:-${XDG_CACHE_HOME:-$HOME/.cache}/uptempo/stacks}")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$stacks/$name
tree=$root/src/uptempo
mkdir -p "$stacks"

sources=$systems/projects/rocr-runtime
if [ "$name" = rocm7 ] && [ ! -e "$root/src/rocr/installed" ] && [ ! -e "$sources/CMakeLists.txt" ]; then
  fail "UPTEMPO_ROCM_SYSTEMS must name a checkout of ROCm/rocm-systems; '$sources' has no CMakeLists.txt."
fi
if [ ! -d "$root" ]; then
  echo "tools/check --stack: making $root with debootstrap"
  make_root "$release" "$root"
fi
mkdir -p "$tree"

# Debian's package stays installed, for those that depend on it; its headers and links are replaced.
if [ "$name" = rocm7 ] && [ ! -e "$root/src/rocr/installed" ]; then
  rm -rf "$root/src/rocr"
  mkdir "$root/src/rocr"
  cp -r "$sources" "$root/src/rocr/sources"
  echo "tools/check --stack: building ROCr of $sources"
  in_root "$root" bash -euc '
    export DEBIAN_FRONTEND=noninteractive
    apt-get update
    apt-get install -y --no-install-recommends g++ cmake ninja-build pkgconf xxd libhsa-runtime-dev \
      libdrm-dev libelf-dev libnuma-dev clang-21 lld-21 libclang-21-dev llvm-21-dev rocm-device-libs-21
    cmake -S /src/rocr/sources -B /src/rocr/build -G Ninja -DCMAKE_BUILD_TYPE=Release \
      -DCMAKE_PREFIX_PATH=/usr/lib/llvm-21 -DCMAKE_INSTALL_PREFIX=/usr \
      -DCMAKE_INSTALL_LIBDIR=lib/x86_64-linux-gnu
    cmake --build /src/rocr/build
    cmake --install /src/rocr/build
    ldconfig
    cmp /usr/lib/x86_64-linux-gnu/libhsa-runtime64.so.1 /src/rocr/build/rocr/lib/libhsa-runtime64.so.1
    touch /src/rocr/installed' >"$root.rocr.log" 2>&1 ||
    { tail -n 15 "$root.rocr.log" >&2; fail "ROCr could not be built; see $root.rocr.log."; }
fi

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
# tools/format and the stages mutants and wheel ask git for the tree's files.
git -C "$tree" init --quiet
git -C "$tree" add --all

echo "tools/check --stack: running tools/check $* in $root"
in_root "$root" bash -c 'cd /src/uptempo && exec tools/check "$@"' tools/check "$@"
