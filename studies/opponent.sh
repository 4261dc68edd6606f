#!/usr/bin/env bash
# The paper's objective at its best: optimizers and rates for the shipped classifiers, compared on validation clips. Runs
# share the GPU. Usage: studies/opponent.sh OUT [JHMDB]
#
# For demo: the loss (8) on val (paper-loss.json), while training (paper-curves.json), and what its tubes do there
# (world-64-paper-val.json). With the folder of J-HMDB the same for jhmdb-i3d: paper-loss-jhmdb.json,
# paper-curves-jhmdb.json, jhmdb-paper-val.json. The clips of val are held out of these trainings, but the shipped
# classifier of J-HMDB has learnt from them. What is chosen is passed on to the other studies: PAPER_BEST="--lr 3e-4".
#
# To try it on a CPU: QUICK="--clips 8 --set batch_size=2 --distinct 8" RUNS="adamw:1e-3 sgd:1e-4" COUNT=2 studies/opponent.sh OUT
set -euo pipefail
out=${1:?usage: studies/opponent.sh OUT [JHMDB]} folder=${2:-}
here=$(dirname "$0")
read -ra whytube <<<"${WHYTUBE:-whytube}"
python=${PYTHON:-python} # one that has whytube
read -ra runs <<<"${RUNS:-adamw:3e-4 adamw:1e-3 adamw:3e-3 sgd:1e-5 sgd:1e-4 sgd:1e-3}" # OPTIMIZER:RATE or OPTIMIZER:RATE:CLIPS
read -ra quick <<<"${QUICK:-}" # options of trainings
count=${COUNT:-48}             # clips of val
at_once=${AT_ONCE:-64}         # trainings that share the machine, 1 on a CPU
fills=mean,blur,freeze,zero    # zero is the paper's
mkdir -p "$out"

diverged() { # RUN LOG: SGD may end with an error once its loss is not finite; any other end is a fault
    [[ $1 == sgd:* ]] && grep -q "training diverged" "$2"
}

sweep() { # MODEL DATA FOLDER LOSS CURVES JUDGED
    local running=() losses=() curves=() with=() place run dir rate clips
    mkdir -p "$3"
    for run in "${runs[@]}"; do
        while (($(jobs -rp | wc -l) >= at_once)); do sleep 1; done
        dir=$3/${run//:/-}
        IFS=: read -r _ rate clips <<<"$run"
        "${whytube[@]}" train explainer --classifier "$1" --data "$2" --objective paper --recipe paper-tuned \
            --clips 30000 --distinct 2000 --set "optimizer=${run%%:*}" --lr "$rate" --out "$dir" --save "$dir.json" \
            "${quick[@]}" ${clips:+--clips "$clips"} >"$dir.log" 2>&1 &
        running+=($!)
    done
    for place in "${!runs[@]}"; do
        run=${runs[place]} dir=$3/${runs[place]//:/-}
        if ! wait "${running[place]}"; then
            diverged "$run" "$dir.log" && echo "$1: $run diverged" && continue
            cat "$dir.log" >&2
            return 1
        fi
        losses+=("$run=$dir/explainer.safetensors") curves+=("$run=$dir.json") with+=(--with "paper $run=$dir/explainer.safetensors")
    done
    "$python" "$here/objective_loss.py" "${losses[@]}" --model "$1" --data "$2" --split val --count "$count" --out "$out/$4.json"
    "$python" "$here/results.py" curves "${curves[@]}" --out "$out/$5.json"
    "${whytube[@]}" evaluate --model "$1" --data "$2" --split val --count "$count" --effort quick --fills "$fills" \
        "${with[@]}" --peers centre,random-tube --out "$out/$6.json"
}

sweep demo world "$out/opponent-demo" paper-loss paper-curves world-64-paper-val
if [ -n "$folder" ]; then
    data=$out/jhmdb-1-val
    [ -d "$data" ] || "${whytube[@]}" data import jhmdb "$folder" --split 1 --val 0.2 --out "$data"
    sweep jhmdb-i3d "$data" "$out/opponent-jhmdb" paper-loss-jhmdb paper-curves-jhmdb jhmdb-paper-val
fi
