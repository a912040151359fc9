#!/usr/bin/env bash
# Runs test_comm_mpi on 2, 3 and 4 processes: MPIRUN PROGRAM programs|pieces|failures.
set -uo pipefail
mpirun=$1 program=$2 what=$3
if ! command -v "$mpirun" > /dev/null; then
  echo "skipped: no mpirun"
  exit 0
fi
options=()
if "$mpirun" --version 2> /dev/null | grep -qE "Open MPI|OpenRTE"; then
  options=(--oversubscribe --allow-run-as-root)
fi
failed=0
output=$(mktemp)
trap 'rm -f "$output"' EXIT
# expect CODE LINES N WORD...: on N processes the program ends with the code within 60 s, and so many
# ranks say how they ended.
expect() {
  local expected=$1 lines=$2 n=$3 code=0
  shift 3
  timeout 60 "$mpirun" "${options[@]}" -n "$n" "$program" "$@" > "$output" 2>&1 || code=$?
  echo "$* on $n processes: code $code"
  if [ "$code" -ne "$expected" ] || [ "$(grep -c ' ended: ' "$output")" -ne "$lines" ] ||
     grep -q "not as expected" "$output"; then
    echo "expected: code $expected, $lines lines"
    cat "$output"
    failed=1
  fi
}
for n in 2 3 4; do
  case "$what" in
    programs) expect 0 0 "$n" programs ;;
    pieces) expect 0 0 "$n" programs 1000 ;;  # a message of 100,000 bytes has a hundred pieces
    failures)
      expect 5 "$n" "$n" fails "own error"
      expect 6 "$n" "$n" fails leaves
      ;;
  esac
done
[ "$what" != failures ] || expect 6 3 3 hangs
# The launcher ends the others, by the signal's code (Open MPI: 137).
if [ "$what" = failures ]; then
  code=0
  timeout 60 "$mpirun" "${options[@]}" -n 3 "$program" dies > "$output" 2>&1 || code=$?
  if [ "$code" -eq 0 ] || [ "$code" -eq 124 ]; then
    echo "a rank that is killed: code $code"
    failed=1
  fi
fi
exit "$failed"
