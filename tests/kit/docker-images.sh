#!/usr/bin/env bash
# Base images, made here from Debian packages and imported: no image is ever pulled. Idempotent.
#
#   docker-images.sh [busybox] [debian] [postgres] [static FILE NAME]
#
#   ci/busybox:1         2 MB, 0.3 s: sh and the busybox tools. Its static wget and nslookup crash (139) on host NAMES;
#                        addresses are fine. Where names matter, use ci/debian.
#   ci/debian:bookworm   110-200 MB, 30-40 s the first time, then from a kept tar: bash, git, ca-certificates
#   ci/postgres:15       230 MB, 40-90 s the first time, then from a kept tar: PostgreSQL that makes its cluster and listens on 5432
#   static FILE NAME     an image FROM scratch that holds one static program, such as the agent, as /NAME
. "$(dirname "$0")/lib.sh"
component docker-images
suite=${KIT_DEBIAN_SUITE:-bookworm}

has() { docker image inspect "$1" >/dev/null 2>&1; }

busybox() {
  has ci/busybox:1 && return
  debs busybox-static
  local root applet; root=$(mktemp -d); trap "rm -rf $root" RETURN EXIT
  mkdir -p "$root"/{bin,etc,proc,sys,dev,root,tmp}; chmod 1777 "$root/tmp"
  cp /bin/busybox "$root/bin/"
  for applet in $(/bin/busybox --list | grep -v '^busybox$'); do ln -s busybox "$root/bin/$applet"; done
  printf 'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n' >"$root/etc/passwd"
  printf 'root:x:0:\nnogroup:x:65534:\n' >"$root/etc/group"
  tar -C "$root" -c . | docker import -c 'ENV PATH=/bin' -c 'CMD ["sh"]' - ci/busybox:1 >/dev/null
}

debian() {
  has "ci/debian:$suite" && return
  debs mmdebstrap
  local tar=$KIT_TOOLS/debian-$suite.tar
  [ -s "$tar" ] || alone debian-image build_debian "$tar"
  docker import -c 'CMD ["bash"]' "$tar" "ci/debian:$suite" >/dev/null
}
build_debian() {
  local tar=$1
  [ -s "$tar" ] || { mmdebstrap --quiet --variant=minbase --include=git,ca-certificates,openssh-client \
      --aptopt='Apt::Install-Recommends "false"' "$suite" "${tar%.tar}.new.tar" "deb $(debian_archive) $suite main" >&2; mv "${tar%.tar}.new.tar" "$tar"; }
}

# POSTGRES_PASSWORD and POSTGRES_DB are understood, as by the image of that name that everybody knows.
postgres() {
  has ci/postgres:15 && return
  debs mmdebstrap
  local tar=$KIT_TOOLS/postgres-15.tar
  [ -s "$tar" ] || alone postgres-image build_postgres "$tar"
  docker import -c 'ENV PATH=/usr/lib/postgresql/15/bin:/usr/sbin:/usr/bin:/sbin:/bin' -c 'EXPOSE 5432' -c 'USER postgres' \
    -c 'ENTRYPOINT ["/bin/bash", "/start"]' "$tar" ci/postgres:15 >/dev/null
}
build_postgres() {
  local tar=$1 start
  [ ! -s "$tar" ] || return 0
  start=$(mktemp); trap "rm -f $start" RETURN EXIT
  cat >"$start" <<'END'
set -e
data=/var/lib/postgresql/data
initdb -D $data -U postgres --no-sync -A "$([ -n "${POSTGRES_PASSWORD:-}" ] && echo scram-sha-256 || echo trust)" --pwfile=<(echo "${POSTGRES_PASSWORD:-x}") >/dev/null
echo 'host all all all scram-sha-256' >>$data/pg_hba.conf
[ -n "${POSTGRES_PASSWORD:-}" ] || sed -i 's/scram-sha-256$/trust/' $data/pg_hba.conf
[ -z "${POSTGRES_DB:-}" ] || echo "create database \"$POSTGRES_DB\";" | postgres --single -D $data postgres >/dev/null
exec postgres -D $data -c listen_addresses='*' -c fsync=off -k /tmp
END
  mmdebstrap --quiet --variant=minbase --include=postgresql-15 --aptopt='Apt::Install-Recommends "false"' \
    --customize-hook="install -m 644 $start \$1/start" --customize-hook='chroot "$1" chown -R postgres: /var/lib/postgresql' \
    "$suite" "${tar%.tar}.new.tar" "deb $(debian_archive) $suite main" >&2
  mv "${tar%.tar}.new.tar" "$tar"
}

static() {
  local root; root=$(mktemp -d); trap "rm -rf $root" RETURN EXIT
  install -m 755 "$1" "$root/$2"; mkdir -m 1777 "$root/tmp"
  tar -C "$root" -c . | docker import -c "ENTRYPOINT [\"/$2\"]" - "ci/$2:static" >/dev/null
  echo "ci/$2:static"
}

[ $# -gt 0 ] || set -- busybox debian
while [ $# -gt 0 ]; do
  case $1 in
    busybox) busybox; echo BUSYBOX_IMAGE=ci/busybox:1 ;;
    debian) debian; echo "DEBIAN_IMAGE=ci/debian:$suite" ;;
    postgres) postgres; echo POSTGRES_IMAGE=ci/postgres:15 ;;
    static) echo "STATIC_IMAGE=$(static "$2" "$3")"; shift 2 ;;
    *) die "unknown image $1" ;;
  esac
  shift
done
