#!/usr/bin/env bash
# The study of J-HMDB behind results/jhmdb.json, results/jhmdb-1.json and the classifiers of docs/jhmdb.md: I3D from Kinetics on splits 1 to 3
# with the paper's objective and ours; and the paper's C3D-ResNet, from nothing and from the embedded world. Several runs
# share the GPU. Then, unless CONTROLS=0, on split 1: insertion and deletion (jhmdb-curves.json), the same tubes on a network
# that was fine-tuned with another seed (jhmdb-transfer.json), and a network with random weights (jhmdb-random-weights.json).
# Usage: studies/jhmdb.sh JHMDB OUT
set -euo pipefail
folder=${1:?usage: studies/jhmdb.sh JHMDB OUT} out=${2:?usage: studies/jhmdb.sh JHMDB OUT}
here=$(dirname "$0")/../configs
read -ra whytube <<<"${WHYTUBE:-whytube}"
results=("${PYTHON:-python}" "$(dirname "$0")/results.py") # PYTHON: one that has whytube
read -ra quick <<<"${QUICK:-}"   # e.g. --clips 64, to try the script
read -ra judged <<<"${JUDGED:-}" # e.g. --count 4
read -ra worldly <<<"${WORLD_SPLITS:-1 2 3}" # splits on which C3D also starts from the embedded world
mkdir -p "$out"

i3d() { # SPLIT
    local data=$out/jhmdb-$1 dir=$out/i3d-$1 config=$here/jhmdb-i3d.toml
    "${whytube[@]}" train classifier --config "$config" --data "$data" --out "$dir" --save "$dir/classifier.json" "${quick[@]}"
    "${whytube[@]}" train explainer --config "$config" --data "$data" --out "$dir" --save "$dir/explainer.json" "${quick[@]}"
    "${whytube[@]}" train explainer --config "$config" --data "$data" --out "$dir/paper" --objective paper --lr 1e-3 \
        --classifier "$dir/classifier.safetensors" --save "$dir/paper/explainer.json" "${quick[@]}"
    "${whytube[@]}" evaluate --config "$config" --data "$data" --model "$dir" --with "$dir/paper/explainer.safetensors" \
        --out "$out/jhmdb-$1.json" "${judged[@]}"
}

controls() { # what else is asked on split 1
    local data=$out/jhmdb-1 dir=$out/i3d-1 twin=$out/i3d-1-twin config=$here/jhmdb-i3d.toml
    local common=(--config "$here/jhmdb-i3d.toml" --data "$out/jhmdb-1" --model "$out/i3d-1" "${judged[@]}")
    local peers=grad-cam,random-tube,random-verified
    "${whytube[@]}" train classifier --config "$config" --data "$data" --out "$twin" --seed 1 "${quick[@]}"
    "${whytube[@]}" evaluate "${common[@]}" --peers "$peers" --curves -k 3 --out "$out/jhmdb-curves.json"
    "${whytube[@]}" evaluate "${common[@]}" --peers "$peers,shuffled-scores" --fills mean,blur,freeze,zero,noise \
        --judge-with "$twin" --out "$out/jhmdb-transfer.json"
    "${whytube[@]}" evaluate "${common[@]}" --peers "$peers" --random-weights --out "$out/jhmdb-random-weights.json"
}

c3d() { # NAME SPLIT [OPTION ...]
    local dir=$out/$1-$2
    "${whytube[@]}" train classifier --config "$here/jhmdb-c3d.toml" --data "$out/jhmdb-$2" --out "$dir" \
        --save "$dir.json" "${@:3}" "${quick[@]}"
}

for split in 1 2 3; do
    "${whytube[@]}" data import jhmdb "$folder" --split "$split" --out "$out/jhmdb-$split"
done
running=()
for split in 1 2 3; do
    i3d "$split" >"$out/i3d-$split.log" 2>&1 &
    running+=($!)
done
{
    for split in 1 2 3; do c3d c3d "$split"; done
    "${whytube[@]}" train classifier --preset c3d-resnet --recipe world --lr 1e-3 --clips 19200 --distinct 6400 \
        --out "$out/world" "${quick[@]}"
    for split in "${worldly[@]}"; do c3d c3d-world "$split" --pretrained "$out/world/classifier.safetensors"; done
} >"$out/c3d.log" 2>&1 &
others=$!
for process in "${running[@]}"; do wait "$process"; done
"${results[@]}" pool "$out"/jhmdb-{1,2,3}.json --out "$out/jhmdb.json"
[ "${CONTROLS:-1}" = 0 ] || controls >"$out/controls.log" 2>&1
wait "$others"
networks=() words=()
for split in 1 2 3; do
    networks+=("I3D from Kinetics, split $split=$out/i3d-$split/classifier.json")
    words+=("ours, split $split=$out/i3d-$split/explainer.json" "paper objective, split $split=$out/i3d-$split/paper/explainer.json")
done
for split in 1 2 3; do networks+=("C3D-ResNet from nothing, split $split=$out/c3d-$split.json"); done
for split in "${worldly[@]}"; do
    networks+=("C3D-ResNet from the embedded world, split $split=$out/c3d-world-$split.json")
done
"${results[@]}" curves "${networks[@]}" --out "$out/jhmdb-classifiers.json"
"${results[@]}" curves "${words[@]}" --out "$out/jhmdb-explainers.json"
