# Installs what a build needs. Sourced by tools/quickstart and tools/check, which set `command_name`.
#
# Packages come from the distribution's own archive and nowhere else. A line of a list may name alternatives, `a|b`, the preferred first: the first one
# that is installed or available is taken. Nothing is done, and no root rights are needed, when everything is there already.

build_packages=(
  g++                  # C++20 compiler
  cmake ninja-build    # build system
  libhsa-runtime-dev   # ROCr: HSA queues, signals, memory
  libhsakmt-dev        # ROCT: what HSA does not expose (uptempo::topology)
  libdrm-dev           # its headers are included by hsakmt's CMake package
  libfmt-dev           # text formatting
  nlohmann-json3-dev   # JSON reports; MessagePack metadata of code objects
  libcli11-dev         # command lines
  libhwy-dev           # Highway: vector code of the virtual GPU
  'clang-15|clang-17'  # compiles the kernels
  'lld-15|lld-17'      # links them
  'clang-tools-15|clang-tools-17'  # clang-offload-bundler: code objects of several targets in one
  'rocm-device-libs|rocm-device-libs-17'  # OpenCL built-ins for AMD GPUs
)

check_packages=(
  catch2                      # tests
  'llvm-15-dev|llvm-17-dev'   # libLLVM: oracle of the instruction decoder
  rocminfo hipcc libamdhip64-dev  # unmodified programs that must run on the virtual GPU
  pocl-opencl-icd ocl-icd-opencl-dev opencl-headers  # PoCL: oracle for results, peer for times
  libpocl2-common             # its kernel library
  git python3                 # mutants: applying patches, reading results
  spin                        # models: the model checker
  clang-format-14             # tools/format
  pkgconf                     # install: a program built with uptempo.pc
)

fail() {
  echo "$command_name: $*" >&2
  exit 1
}

is_installed() { [ "$(dpkg-query -W -f='${db:Status-Abbrev}' "$1" 2>/dev/null)" = 'ii ' ]; }

# Prints the packages out of "$@" that are not installed, alternatives resolved.
missing_packages() {
  local entry name chosen
  for entry in "$@"; do
    chosen=
    IFS='|' read -ra names <<<"$entry"
    for name in "${names[@]}"; do
      if is_installed "$name"; then continue 2; fi
    done
    for name in "${names[@]}"; do
      if apt-cache show "$name" >/dev/null 2>&1; then chosen=$name; break; fi
    done
    echo "${chosen:-${names[0]}}"
  done
}

install_packages() {
  [ "$(uname -s)-$(uname -m)" = Linux-x86_64 ] || fail "needs x86-64 Linux; this is $(uname -s) on $(uname -m)."
  command -v apt-get >/dev/null && command -v dpkg-query >/dev/null ||
    fail "installs packages with apt-get (tried on Debian 12); this is $(. /etc/os-release 2>/dev/null && echo "${PRETTY_NAME:-an unknown distribution}"). Install the packages listed in tools/setup.sh by hand and run cmake --preset release."
  local missing
  mapfile -t missing < <(missing_packages "$@")
  if [ "${#missing[@]}" -eq 0 ]; then
    echo "$command_name: every package needed is installed"
    return
  fi
  local root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || fail "has to install ${missing[*]}: run it as root or install sudo."
    root=(sudo)
  fi
  echo "$command_name: refreshing the package lists"
  # Not fatal: a foreign source of the machine may be down while the packages needed are to be had.
  "${root[@]}" apt-get update -qq -o APT::Update::Error-Mode=any ||
    echo "$command_name: the package lists could not be refreshed as a whole; going on with those that are there" >&2
  mapfile -t missing < <(missing_packages "$@")  # which alternatives exist is known only now
  local name
  for name in "${missing[@]}"; do
    apt-cache show "$name" >/dev/null 2>&1 || fail "apt-get knows no package '$name', which Debian 12 has: check the network and /etc/apt/sources.list."
  done
  echo "$command_name: installing ${#missing[@]} packages and what they need: ${missing[*]}"
  local started=$SECONDS
  "${root[@]}" env LC_ALL=C DEBIAN_FRONTEND=noninteractive apt-get install -y -q -o Dpkg::Use-Pty=0 --no-install-recommends "${missing[@]}" 2>&1 |
    tee "$log" | count_packages | show_progress ||
    { tail -n 15 "$log" >&2; fail "apt-get could not install ${missing[*]}: its own message is above; check the network and /etc/apt/sources.list."; }
  echo "$command_name: installed the packages in $((SECONDS - started)) s"
}

# apt-get's lines to lines like ninja's, "[3/12] Setting up cmake (3.25.1-1)".
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

# Shows lines "[n/m] ..." of stdin: on a terminal each in place of the one before, else one for every 5 %.
show_progress() {
  local line next=1 pending=false
  while IFS= read -r line; do
    [[ $line =~ ^\[([0-9]+)/([0-9]+)\] ]] || continue
    local n=${BASH_REMATCH[1]} m=${BASH_REMATCH[2]}
    line=${line/CMakeFiles\/*.dir\//}  # so that the file's name is within a terminal's width
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

# configure_and_build PRESET [TARGET...], with `cmake_options`. Two jobs at least; more than one per 2 GB of memory would swap.
cmake_options=()
configure_and_build() {
  local preset=$1 memory_gb jobs started=$SECONDS
  shift
  memory_gb=$(($(awk '/MemAvailable/ {print $2}' /proc/meminfo) / 1048576))
  jobs=$(nproc)
  if [ "$jobs" -gt $((memory_gb / 2 + 1)) ]; then jobs=$((memory_gb / 2 + 1)); fi
  echo "$command_name: building preset '$preset' with $jobs jobs"
  cmake --preset "$preset" "${cmake_options[@]}" >"$log" 2>&1 ||
    { tail -n 30 "$log" >&2; fail "cmake could not configure preset '$preset': its message is above."; }
  cmake --build --preset "$preset" -j "$jobs" ${1+--target "$@"} 2>&1 | tee "$log" | show_progress ||
    { grep -nE 'error|FAILED' "$log" | head -n 30 >&2; fail "the build of preset '$preset' failed: its first errors are above, all of it is in $log."; }
  echo "$command_name: built preset '$preset' in $((SECONDS - started)) s"
}

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
mkdir -p build
log=build/$command_name.log
command_name=tools/$command_name
