# Installs the packages that a build needs. tools/quickstart and tools/check set `command_name` and
# source this file.
#
# All packages come from the distribution's own archive. An entry names alternatives in order of
# preference, separated by '|'. Each is one package or several: `a|b c`. The first alternative that
# is installed is used, else the first that is available. `a|` is used only if it is available. If
# every package is installed, the script changes nothing and needs no root rights.
#
# Where AMD's ROCm has ROCr, in $ROCM_PATH or else /opt/rocm, the build uses that and HIP from there,
# and the script does not install rocm_packages: a process must not load two ROCr.
#
# Debian 12, 13 and testing differ in their LLVM: 15, 17 and 21 are the versions of the device
# libraries and of HIP. ROCr of Debian testing contains the thunk, so that there is no libhsakmt.

build_packages=(
  g++                  # C++20 compiler
  cmake ninja-build    # build system
  libhsa-runtime-dev   # ROCr: HSA queues, signals, memory
  'libhsakmt-dev|'     # ROCT: tests of the virtual GPU's driver interface
  libdrm-dev           # headers of the virtual GPU's driver interface
  libfmt-dev           # text formatting
  nlohmann-json3-dev   # JSON reports; MessagePack metadata of code objects
  libzstd-dev          # zstd: compressed offload bundles
  libcli11-dev         # command lines
  libhwy-dev           # Highway: vector code of the virtual GPU
  # compiler, linker and OpenCL built-ins of the kernels, of one LLVM version
  'clang-15 lld-15 rocm-device-libs|clang-17 lld-17 rocm-device-libs-17|clang-21 lld-21 rocm-device-libs-21'
)

check_packages=(
  catch2                      # tests
  # libLLVM: oracle of the instruction decoder. gfx942 needs 19; Debian 12 and 13 have it
  'llvm-21-dev|llvm-19-dev|llvm-17-dev|llvm-15-dev'
  rocminfo hipcc libamdhip64-dev  # unmodified programs, run on the virtual GPU
  pocl-opencl-icd ocl-icd-opencl-dev opencl-headers  # PoCL: reference for results and times
  libpocl2-common             # its kernel library
  libopenmpi-dev openmpi-bin  # MPI: samples/sample_sort on several ranks
  git python3                 # mutants: apply patches, read results
  spin                        # models: the model checker
  'clang-format-14|'          # tools/format
  pkgconf                     # install: a program built with uptempo.pc
  'libdw1|libdw1t64'         # elfutils: source lines of the virtual GPU's hang reports
  doxygen help2man            # the manual: HTML and man pages
  'librocrand1|librocfft0'    # AMD's compiled kernels: input of the instruction decoder's tests
)

all_packages=(
  'clang-tidy-14|'            # tools/tidy
  abigail-tools               # tools/abi
  # the Python wheel and test/clients: virtual environments, and headers for Triton
  'python3.13-venv|python3-venv' 'python3.13-dev|python3-dev'
  lintian debootstrap         # Debian packages, and the root that they are tried in
  'librocsparse0|librocsparse1|'  # 500 more of AMD's compiled kernels, 1.3 GB
  # libFuzzer and sanitizers of the clang above
  'libclang-common-15-dev|libclang-rt-17-dev|libclang-rt-21-dev'
)

# The distribution's ROCr, HIP and what depends on them.
rocm_packages=(libhsa-runtime-dev libhsakmt-dev hipcc libamdhip64-dev rocminfo librocrand1 librocfft0 librocsparse0 librocsparse1)

fail() {
  echo "$command_name: $*" >&2
  exit 1
}

is_installed() { [ "$(dpkg-query -W -f='${db:Status-Abbrev}' "$1" 2>/dev/null)" = 'ii ' ]; }
is_available() { apt-cache show "$1" >/dev/null 2>&1; }

each() {  # each TEST PACKAGE...: whether every package passes the test
  local test=$1 name
  shift
  for name in "$@"; do "$test" "$name" || return 1; done
}

# Prints the folder of AMD's ROCm, if there is one with ROCr.
rocm_root() {
  local root=${ROCM_PATH:-/opt/rocm}
  if compgen -G "$root/lib/libhsa-runtime64.so*" >/dev/null; then echo "$root"; fi
}

# Prints the packages out of "$@" that are not installed, alternatives resolved.
missing_packages() {
  local entry alternative chosen name root
  local -a alternatives packages
  root=$(rocm_root)
  for entry in "$@"; do
    IFS='|' read -ra alternatives <<<"$entry"
    if [ -n "$root" ] && [[ " ${rocm_packages[*]} " == *" ${alternatives[0]} "* ]]; then continue; fi
    for alternative in "${alternatives[@]}"; do
      read -ra packages <<<"$alternative"
      if each is_installed "${packages[@]}"; then continue 2; fi
    done
    chosen=${alternatives[0]}
    if [[ $entry == *'|' ]]; then chosen=; fi
    for alternative in "${alternatives[@]}"; do
      read -ra packages <<<"$alternative"
      if each is_available "${packages[@]}"; then chosen=$alternative; break; fi
    done
    for name in $chosen; do is_installed "$name" || echo "$name"; done
  done
}

install_packages() {
  [ "$(uname -s)-$(uname -m)" = Linux-x86_64 ] || fail "requires x86-64 Linux; this machine is $(uname -s) on $(uname -m)."
  command -v apt-get >/dev/null && command -v dpkg-query >/dev/null ||
    fail "cannot install packages without apt-get and dpkg-query (tested on Debian 12, 13 and testing); this is $(. /etc/os-release 2>/dev/null && echo "${PRETTY_NAME:-an unknown distribution}"). Install the packages listed in tools/setup.sh by hand and run cmake --preset release."
  local missing root
  root=$(rocm_root)
  if [ -n "$root" ]; then
    echo "$command_name: using ROCr and HIP of $root (AMD's packages hsa-rocr-dev and hip-dev), not the distribution's"
  fi
  mapfile -t missing < <(missing_packages "$@")
  if [ "${#missing[@]}" -eq 0 ]; then
    echo "$command_name: all required packages are installed"
    return
  fi
  local root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || fail "must install ${missing[*]}; run it as root or install sudo."
    root=(sudo)
  fi
  echo "$command_name: refreshing the package lists"
  # Not fatal: an unrelated source may be unreachable while the required packages are available.
  "${root[@]}" apt-get update -qq -o APT::Update::Error-Mode=any ||
    echo "$command_name: could not refresh all package lists; continuing with the present ones" >&2
  mapfile -t missing < <(missing_packages "$@")  # refreshed lists may offer other alternatives
  local name
  for name in "${missing[@]}"; do
    is_available "$name" || fail "apt-get does not know the package '$name', which Debian 12, 13 or testing has; check the network and /etc/apt/sources.list."
  done
  echo "$command_name: installing ${#missing[@]} packages and their dependencies: ${missing[*]}"
  local started=$SECONDS
  "${root[@]}" env LC_ALL=C DEBIAN_FRONTEND=noninteractive apt-get install -y -q -o Dpkg::Use-Pty=0 --no-install-recommends "${missing[@]}" 2>&1 |
    tee "$log" | count_packages | show_progress ||
    { tail -n 15 "$log" >&2; fail "apt-get could not install ${missing[*]}; see its message above, and check the network and /etc/apt/sources.list."; }
  echo "$command_name: installed the packages in $((SECONDS - started)) s"
}

# Converts apt-get's lines to lines like ninja's, "[3/12] Setting up cmake (3.25.1-1)".
count_packages() {
  local line done=0 total=0
  while IFS= read -r line; do
    if [[ $line =~ ([0-9]+)\ newly\ installed ]]; then
      total=${BASH_REMATCH[1]}
    elif [[ $line == 'Setting up '* ]] && [ "$done" -lt "$total" ]; then
      done=$((done + 1))
      echo "[$done/$total] ${line% ...}"
    fi
  done
}

# Shows the lines "[n/m] ..." of stdin. On a terminal each line replaces the one before; otherwise
# one line per 5 % is printed.
show_progress() {
  local line next=1 pending=false
  while IFS= read -r line; do
    [[ $line =~ ^\[([0-9]+)/([0-9]+)\] ]] || continue
    local n=${BASH_REMATCH[1]} m=${BASH_REMATCH[2]}
    line=${line/CMakeFiles\/*.dir\//}  # so that the file name fits a terminal's width
    if [ -t 1 ]; then
      printf '\r%.79s\033[K' "$line"
      pending=true
    elif [ $((n * 20)) -ge $((next * m)) ]; then
      printf '%.79s\n' "$line"
      next=$((n * 20 / m + 1))
    fi
  done
  if $pending; then echo; fi
}

# configure_and_build PRESET [TARGET...]: configures with `cmake_options`, and builds with one job
# per processor, but at most one per 2 GB of available memory and one more: others would swap.
cmake_options=()
configure_and_build() {
  local preset=$1 memory_gb jobs started=$SECONDS
  local log=${log%.log}-$preset.log  # two stages of tools/check may run at once
  shift
  memory_gb=$(($(awk '/MemAvailable/ {print $2}' /proc/meminfo) / 1048576))
  jobs=$(nproc)
  if [ "$jobs" -gt $((memory_gb / 2 + 1)) ]; then jobs=$((memory_gb / 2 + 1)); fi
  echo "$command_name: building preset '$preset' with $jobs jobs"
  cmake --preset "$preset" "${cmake_options[@]}" >"$log" 2>&1 ||
    { tail -n 30 "$log" >&2; fail "cmake could not configure preset '$preset'; see its message above."; }
  cmake --build --preset "$preset" -j "$jobs" ${1+--target "$@"} 2>&1 | tee "$log" | show_progress ||
    { grep -m 30 -nE 'error|FAILED' "$log" >&2; fail "the build of preset '$preset' failed; its first errors are above, its whole output is in $log."; }
  echo "$command_name: built preset '$preset' in $((SECONDS - started)) s"
}

# build_programs TARGET...: builds these with the preset `quickstart`.
build_programs() {
  local preset=quickstart
  # A build folder with tests keeps its configuration, which includes all programs.
  if grep -qs '^UPTEMPO_BUILD_TESTS:BOOL=ON' build/CMakeCache.txt; then preset=release; fi
  configure_and_build "$preset" "$@"
}

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
mkdir -p build
log=build/$command_name.log
command_name=tools/$command_name
