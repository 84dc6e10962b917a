#!/usr/bin/env bash
# A systemd of the test's own, as PID 1 of its own namespaces: the programs of this machine below it, none of its services. Start: under a second.
# What is written there is gone with it, but for the folders that BIND names, which are those of the machine, by the same paths. Its network is the
# machine's.
#
#   eval "$(BIND='/target /work' systemd.sh start)"
#   nsenter $ENTER systemctl list-units
. "$(dirname "$0")/lib.sh"
component systemd

up() {
  debs systemd util-linux
  [ "$(id -u)" = 0 ] || die "needs root to make namespaces"
  mkdir -p "$STATE/root"
  BIND=${BIND:-} daemon main unshare --pid --fork --kill-child --mount --cgroup --ipc --uts "$0" inside "$STATE/root"
  wait_for 20 main is_up
  say "ENTER=$(enter)" "SYSTEMD_PID=$(init)"
}
# The only child of unshare.
init() { local pid; read -r pid _ <"$STATE/main.pid"; cat "/proc/$pid/task/$pid/children" | tr -d ' '; }
enter() { echo "--target $(init) --mount --pid --cgroup --ipc --uts --root --wdns=/"; }
is_up() { [ -n "$(init)" ] && timeout 5 nsenter $(enter) systemctl is-active --quiet journey.target; }
down() { halt main KILL; }

# PID 1 before systemd: an overlay of the root, so that nothing of the machine is changed.
inside() {
  local space=$1 root=$1/merged folder
  mount --make-rprivate /
  mount -t tmpfs tmpfs "$space"
  mkdir -p "$space/upper" "$space/work" "$root"
  mount -t overlay overlay -o "lowerdir=/,upperdir=$space/upper,workdir=$space/work" "$root"
  mount -t proc proc "$root/proc"
  mount --rbind /dev "$root/dev"
  mount -t sysfs sysfs "$root/sys"
  mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
  mount -t tmpfs tmpfs "$root/run"
  mkdir -p "$root/run/lock"
  for folder in $BIND; do mkdir -p "$root$folder"; mount --bind "$folder" "$root$folder"; done
  # No unit of the machine: those of the test alone.
  rm -rf "$root"/etc/systemd/system/*
  printf '[Unit]\nDescription=What a journey needs\n' >"$root/etc/systemd/system/journey.target"
  exec env -i container=journey "PATH=$PATH" chroot "$root" /lib/systemd/systemd --system --unit=journey.target --log-target=console --show-status=no
}
[ "${1:-}" != inside ] || { set -e; shift; inside "$@"; }
serve "$@"
