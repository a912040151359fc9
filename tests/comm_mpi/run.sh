#!/usr/bin/env bash
# Runs test_comm_mpi on 2, 3 and 4 processes: MPIRUN PROGRAM programs|pieces|failures. With `cut` and
# `cut_long`, on hosts of scripts/cluster_lab, where MPI has a network of its own that is cut or slow.
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
# MPI is ended in order, however long a rank has worked on when all others have left.
[ "$what" != cut_long ] || expect 0 2 2 late 12
if [ "$what" = cut ] || [ "$what" = cut_long ]; then
  lab=$(cd "$(dirname "$0")/../../scripts" && pwd)/cluster_lab
  begun=$output.begun  # all links of MPI are in use
  trap 'rm -f "$output" "$begun"' EXIT
  # in_lab LINES LINE N OPTION... -- WORD...: sets `code`; so many ranks end, all with this line.
  in_lab() {
    local lines=$1 line=$2 said
    shift 2
    code=0
    rm -f "$begun"
    timeout 90 "$lab" "$@" > "$output" 2>&1 || code=$?
    echo "$*: code $code"
    if [ "$code" -eq 77 ] || grep -q "cluster_lab: .* is not installed" "$output"; then
      echo "skipped: no network namespaces"
      exit 0
    fi
    said=$(sed -n 's/^rank [0-9]* ended: //p' "$output" | sort | uniq -c)
    if ! grep -qE "^ *$lines $line\$" <<< "$said" || [ "$(wc -l <<< "$said")" -ne 1 ]; then
      echo "expected: $lines times '$line'"
      cat "$output"
      failed=1
    fi
  }
  stands="has moved no message to or from"
  where="for [0-9.]* s, in exchange [0-9]* of step 1, though all give signs of life; .*"
  in_lab 2 "rank 1 \(host node1\) $stands rank 0 \(host node0\) $where" 2 --cut-mpi "1@$begun" \
    -- "$program" moves 1000000 2 0 3 "$begun"
  [ "$code" -eq 6 ] || failed=1
  [ "$what" = cut_long ] || exit "$failed"
  # With some ranks it may have nothing under way at that moment.
  cut="rank 2 \(host node2\)" other="rank [013] \(host node[013]\)"
  in_lab 4 "($cut $stands $other( and [12] more ranks?)?|$other $stands $cut) $where" \
    4 --cut-mpi "2@$begun" -- "$program" moves 1000000 2 0 3 "$begun"
  [ "$code" -eq 6 ] || failed=1
  # The message takes 54 s, and would begin with 13 s without a piece if MPI had all of it.
  in_lab 2 "" 2 --rate 10mbit -- "$program" moves 1 64 0 4
  [ "$code" -eq 0 ] || failed=1
  # All has been sent. The launcher has no code for ranks that leave without MPI.
  in_lab 2 "" 2 --cut-mpi "1@$begun" -- "$program" moves 1 1 8 3 "$begun"
  [ "$code" -ne 124 ] || failed=1
  exit "$failed"
fi
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
