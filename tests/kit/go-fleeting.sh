#!/usr/bin/env bash
# The other side of the plug in Go, which we did not write: the dummy plugin of the public fleeting module, and a small program that drives
# plugins of ours through the public library (go-fleeting/host). Needs Go 1.26. Prints FLEETING_PLUGIN_DUMMY and GO_FLEETING_HOST.
#
#   eval "$(go-fleeting.sh)"; $FLEETING_PLUGIN_DUMMY --version
#
# go-fleeting/go.mod pins the version, since the newest is not always served.
. "$(dirname "$0")/lib.sh"
sources=$(cd "$KIT/go-fleeting" && cat go.mod go.sum host/main.go | sha256sum | cut -c1-16)
dummy=$KIT_TOOLS/bin/fleeting-plugin-dummy host=$KIT_TOOLS/bin/go-fleeting-host-$sources
build() {
  command -v go >/dev/null || die "needs Go"
  cd "$KIT/go-fleeting"
  [ -x "$dummy" ] || GOFLAGS=-buildvcs=false go build -trimpath -o "$dummy" \
    gitlab.com/gitlab-org/fleeting/fleeting/plugin/fleeting-plugin-dummy/cmd/fleeting-plugin-dummy >&2
  [ -x "$host" ] || GOFLAGS=-buildvcs=false go build -trimpath -o "$host" ./host >&2
}
[ -x "$dummy" ] && [ -x "$host" ] || alone go-fleeting build
printf 'FLEETING_PLUGIN_DUMMY=%s\nGO_FLEETING_HOST=%s\n' "$dummy" "$host"
