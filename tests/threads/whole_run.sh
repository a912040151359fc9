#!/usr/bin/env bash
# One model through the program: made, trained on five threads with saves, evaluation and logs, stopped
# by a signal, gone on with, asked, exported and checked. HEARTH DIRECTORY; the program is instrumented.
set -euo pipefail
hearth=$1 work=$2
here=$(cd "$(dirname "$0")" && pwd)
rm -rf "$work"
mkdir -p "$work"
cd "$work"

sed -e 's/"hidden_size": [0-9]*/"hidden_size": 32/' -e 's/"num_experts": [0-9]*/"num_experts": 4/' \
  -e 's/"\(moe_\)\?intermediate_size": [0-9]*/"\1intermediate_size": 24/' \
  -e 's/"num_hidden_layers": [0-9]*/"num_hidden_layers": 2/' \
  "$here/../../scripts/quickstart.d/config.json" > config.json
for i in $(seq 40); do echo "{\"text\": \"row $i of a small file, $((i * i)) times\"}"; done > rows.jsonl

"$hearth" init --config config.json --out model --seed 1 --quiet
train=(train --model model --data rows.jsonl --eval-data rows.jsonl --out run --seq-len 32
  --micro-batch 2 --grad-accum 2 --save-every 3 --eval-every 4 --lr 1e-3 --threads 5 --quiet)
"$hearth" "${train[@]}" --steps 1000 &
pid=$!
trap 'kill -9 $pid 2> /dev/null || true' EXIT
until ls run/state/step-* > /dev/null 2>&1; do
  kill -0 $pid
  sleep 0.1
done
kill -TERM $pid
code=0
wait $pid || code=$?
trap - EXIT
[ $code -eq 75 ] || { echo "stopped with $code instead of 75"; exit 1; }
last=$(ls run/state | grep '^step-' | tail -n 1)
"$hearth" "${train[@]}" --steps $((10#${last#step-} + 4)) --allow-change steps
"$hearth" eval --model run/model --data rows.jsonl --seq-len 32 --threads 5 --quiet
"$hearth" generate --model run/model --prompt "row 1" --max-new-tokens 4 --threads 5 --quiet
"$hearth" export --from-state run --out exported --quiet
"$hearth" verify run --quiet
