# compile.sh SOURCE -ON: writes the object file to $INTO and its name to $OUTPUT.
set -eu
object=$INTO/$(basename "$1" .c).o
mkdir -p "$INTO"
cc -c $WARNINGS "$2" -o "$object" "$1"
echo "compiled $1"
printf '{"name": "object", "value": "%s"}\n' "$object" >>"$OUTPUT"
