# Roots of Debian releases, for tools/stack.sh and tools/packages.sh, which define fail() and source
# this file. UPTEMPO_STACK_MIRROR names another mirror than debootstrap's.

# needs_root_rights COMMAND...: fails without root rights or if a command is not installed.
needs_root_rights() {
  local name
  [ "$(id -u)" -eq 0 ] || fail "must run as root, because it mounts file systems and changes its root."
  for name in debootstrap "$@"; do
    command -v "$name" >/dev/null || fail "$name is not installed; install the package $name."
  done
}

# make_root RELEASE FOLDER: a bare root of that release in FOLDER, with a log beside it.
make_root() {
  local suite=$1 root=$2
  # The debootstrap of an older Debian does not know the name of today's testing.
  if [ "$suite" = forky ] && [ ! -e /usr/share/debootstrap/scripts/forky ]; then suite=testing; fi
  rm -rf "$root.part"
  debootstrap --variant=minbase "$suite" "$root.part" ${UPTEMPO_STACK_MIRROR:+"$UPTEMPO_STACK_MIRROR"} >"$root.log" 2>&1 ||
    { tail -n 15 "$root.log" >&2; fail "debootstrap could not make a root of $suite; see its message above, and check the network."; }
  mv "$root.part" "$root"
}

# in_root ROOT COMMAND...: runs the command in the root, with a clean environment. The mounts are in
# a namespace of their own and end with it.
in_root() {
  local root=$1 variable
  shift
  local environment=(HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 "TERM=${TERM:-dumb}")
  for variable in http_proxy https_proxy no_proxy UPTEMPO_STACK_MIRROR PIP_INDEX_URL; do
    if [ -n "${!variable-}" ]; then environment+=("$variable=${!variable}"); fi
  done
  # The certificates with which the host's pip trusts a registry.
  if [ -e "${PIP_CERT-}" ]; then
    mkdir -p "$root/etc/ssl"
    cp -L "$PIP_CERT" "$root/etc/ssl/pip.pem"
    environment+=(PIP_CERT=/etc/ssl/pip.pem)
  fi
  # Missing where the host resolves names without it.
  if [ -e /etc/resolv.conf ]; then cp --remove-destination -L /etc/resolv.conf "$root/etc/resolv.conf"; fi
  unshare --mount --propagation private -- bash -euc '
    root=$1
    shift
    mount --bind "$root" "$root"  # unshare in the root, for one more root, needs a mount there
    mount -t proc proc "$root/proc"
    mount -t sysfs sysfs "$root/sys"
    mount --rbind /dev "$root/dev"
    exec chroot "$root" env -i "$@"
  ' bash "$root" "${environment[@]}" "$@"
}
