#!/usr/bin/env bash
# A page as a browser draws it (a picture) or holds it (its elements), by Debian's chromium-headless-shell. 0.5-2 s each.
#
#   screenshot.sh URL|FILE OUT.png  [WIDTHxHEIGHT]     MOBILE=1 for a phone-sized page, DARK=1 for dark colours
#   screenshot.sh URL|FILE OUT.html [WIDTHxHEIGHT]     the elements after the page's own script has run
# The flags keep the browser from trying to reach hosts of its own, which a closed network refuses many at a time.
. "$(dirname "$0")/lib.sh"
[ $# -ge 2 ] || die "usage: ${0##*/} URL|FILE OUT.png|OUT.html [WIDTHxHEIGHT]"
debs chromium-headless-shell fonts-dejavu-core
page=$1 out=$(realpath -m "$2") size=${3:-1200x800} flags=()
[ -z "${MOBILE:-}" ] || size=${3:-390x844}
[ -z "${DARK:-}" ] || flags+=(--blink-settings=preferredColorScheme=0)
[ ! -e "$page" ] || page=file://$(realpath "$page")
profile=$(mktemp -d); trap 'rm -rf "$profile"' EXIT
case $out in
  *.html) flags+=(--dump-dom); to=$out ;;
  *) flags+=("--screenshot=$out"); to=$profile/picture.log ;;
esac
timeout 60 chromium-headless-shell --no-sandbox --disable-gpu --disable-quic --disable-background-networking --disable-component-update \
  --disable-sync --no-first-run --hide-scrollbars --user-data-dir="$profile" --virtual-time-budget="${BUDGET:-2000}" \
  --window-size="${size/x/,}" "${flags[@]}" "$page" >"$to" 2>"$profile/log" || { tail -n 5 "$profile/log" >&2; die "nothing of $page"; }
[ -s "$out" ] || { tail -n 5 "$profile/log" >&2; die "nothing of $page"; }
echo "SCREENSHOT=$out"
