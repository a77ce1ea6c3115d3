#!/usr/bin/env bash
# Run by tools/packages.sh in a bare Debian root, which it changes: installs the packages of
# /src/packages, builds and runs a program in C++ and one in C, and removes the packages.
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive
mkdir /work
cd /work

step() { echo "packages: $*"; }
quietly() { "$@" >log 2>&1 || { tail -n 30 log; step "failed: $*"; exit 1; }; }
prints() {  # prints TEXT COMMAND...: its output contains the text
  local text=$1 output
  shift
  output=$("$@" 2>&1) || { step "failed: $*: $output"; exit 1; }
  [[ $output == *"$text"* ]] || { step "'$*' must print '$text', but printed: $output"; exit 1; }
}

step "installing a C++ compiler, CMake, pkgconf and man-db"
quietly apt-get update
quietly apt-get install -y --no-install-recommends g++ make cmake pkgconf man-db
step "installing libuptempo-dev and what it depends on and recommends"
quietly apt-get install -y /src/packages/libuptempo0_*.deb /src/packages/libuptempo-dev_*.deb
prints libuptempo.so.0 ldconfig -p

step "building the manual's program with find_package, and a program in C with pkg-config"
quietly cmake -S /usr/share/doc/uptempo/examples/saxpy -B saxpy -DGPU_TARGETS=gfx90a
quietly cmake --build saxpy
read -ra flags < <(pkg-config --cflags --libs uptempo-shared)
quietly cc -std=c11 /usr/share/doc/uptempo/samples/c/first_batch.c "${flags[@]}" -luptempo_kernels -o first_batch
prints 'libuptempo.so.0' ldd first_batch

step "installing uptempo-tools"
quietly apt-get install -y /src/packages/uptempo-tools_*.deb
version=$(dpkg-query -W -f '${Version}' uptempo-tools)
prints "$version" uptempo-vgpu --version
prints 'uptempo-vgpu' man uptempo-vgpu
prints "$(cat /src/tools/manual/outputs/saxpy.txt)" uptempo-vgpu -- saxpy/saxpy
prints '32768 keys sorted by 120 dispatches' uptempo-vgpu -- ./first_batch
prints 'uptempo-lint: saxpy' uptempo-vgpu -- uptempo-lint -- saxpy/saxpy
prints 'uptempo-vgpu' cat /usr/share/bash-completion/completions/uptempo-vgpu /usr/share/zsh/vendor-completions/_uptempo-vgpu
prints 'uptempo-lint: saxpy' env HSA_TOOLS_LIB=libuptempo-lint.so uptempo-vgpu -- saxpy/saxpy
quietly uptempo-vgpu --check memory,races --error-exitcode 9 -- saxpy/saxpy

step "removing the packages"
# /var has logs of apt-get and pages that man has formatted.
packages=(libuptempo0 libuptempo-dev uptempo-tools)
dpkg-query -L "${packages[@]}" >files
quietly apt-get purge -y "${packages[@]}"
left=$(while read -r file; do if [ ! -d "$file" ] && { [ -e "$file" ] || [ -L "$file" ]; }; then echo "$file"; fi; done <files
       find / -xdev \( -path /src -o -path /work -o -path /var/log -o -path /var/cache -o -path /proc -o -path /sys \) -prune -o -name '*uptempo*' -print)
[ -z "$left" ] || { step "left after the removal: $left"; exit 1; }
[[ $(ldconfig -p) != *libuptempo* ]] || { step "ldconfig still lists libuptempo.so.0"; exit 1; }
