# Fails when $PROGRAM, given $TEXT, does not print $EXPECTED.
set -eu
printed=$(printf %s "$TEXT" | "$PROGRAM")
if [ "$printed" != "$EXPECTED" ]; then
  echo "expected: $EXPECTED"
  echo "     got: $printed"
  exit 1
fi
echo "as expected: $printed"
printf '{"name": "verdict", "value": {"printed": "%s", "characters": %d}}\n' "$printed" "${#TEXT}" >>"$OUTPUT"
