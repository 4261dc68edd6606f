#!/usr/bin/env bash
# The study of J-HMDB: I3D on splits 1 to 3 (the shipped network on split 1; the others are fine-tuned here), their
# explainers, and all figures behind results/jhmdb*.json. Runs share the GPU. Usage: studies/jhmdb.sh JHMDB OUT
#
# STAGES names what is done, in this order: networks (trained and explained, each judged once it is done: jhmdb-1.json,
# jhmdb-2.json, jhmdb-3.json, pooled in jhmdb.json), peers (the paper's objective and all peers at equal cost,
# jhmdb-peers.json), unerased (a network trained without erased tubes, jhmdb-unerased.json), effort (quality
# over tubes tried, jhmdb-effort-N.json), front (words against fidelity, jhmdb-front-W.json), boxed (the same with the
# shipped model, on the test clips with boxes of parts alone, jhmdb-boxed-front-W.json: for a CPU), boxed-peers (peers at
# equal cost on one such clip of every class, jhmdb-boxed-peers.json: likewise), boxed-paper (the paper's objective for the
# shipped classifier, with and without our search, on the same clips, jhmdb-boxed-paper.json: likewise), boxed-unerased
# (the same for a network that was trained without erased tubes, jhmdb-boxed-unerased.json: likewise).
set -euo pipefail
folder=${1:?usage: studies/jhmdb.sh JHMDB OUT} out=${2:?usage: studies/jhmdb.sh JHMDB OUT}
config=$(dirname "$0")/../configs/jhmdb-i3d.toml
read -ra whytube <<<"${WHYTUBE:-whytube}"
results=("${PYTHON:-python}" "$(dirname "$0")/results.py") # PYTHON: one that has whytube
read -ra stages <<<"${STAGES:-networks peers unerased effort front}"
read -ra quick <<<"${QUICK:-}" # options of trainings, e.g. --clips 64, to try the script
effort=${EFFORT:-96}           # tubes tried where answers are judged
others=${OTHERS:-0}            # clips judged of splits 2 and 3, 0 for all
few=${FEW:-48}                 # clips judged by peers, effort and front
fills=mean,blur,freeze,zero    # zero is the paper's
due=ours-unverified,paper+verified,paper-sgd+verified
main=$due,ours-regions,predicted,random-verified,grad-cam,centre,detector-box,random-tube,random-attribute,shuffled-attributes
mkdir -p "$out"

explainer() { # SPLIT CLASSIFIER
    "${whytube[@]}" train explainer --config "$config" --data "$out/jhmdb-$1" --classifier "$2" --out "$out/i3d-$1" \
        --save "$out/i3d-$1/explainer.json" "${quick[@]}"
}

papers() { # SPLIT FOLDER: the paper's objective for the classifier in a folder, at its best and to the letter
    "${whytube[@]}" train explainer --config "$config" --data "$out/jhmdb-$1" --classifier "$2/classifier.safetensors" \
        --objective paper --recipe paper-tuned --clips "${PAPER_CLIPS:-30000}" --out "$2/paper" --save "$2/paper.json" "${quick[@]}"
    "${whytube[@]}" train explainer --config "$config" --data "$out/jhmdb-$1" --classifier "$2/classifier.safetensors" \
        --objective paper-sgd --recipe paper --clips 1500 --out "$2/paper-sgd" --save "$2/paper-sgd.json" "${quick[@]}"
}

judge() { # SPLIT COUNT
    local dir=$out/i3d-$1
    papers "$1" "$dir"
    "${whytube[@]}" evaluate --config "$config" --data "$out/jhmdb-$1" --model "$dir" --count "$2" --effort "$effort" \
        --with "$dir/paper/explainer.safetensors" --with "$dir/paper-sgd/explainer.safetensors" --fills "$fills" \
        --peers "$main" --out "$out/jhmdb-$1.json" --overwrite
}

network() { # SPLIT
    local dir=$out/i3d-$1
    mkdir -p "$dir"
    if [ "$1" = 1 ]; then
        cp "$(dirname "$0")/../src/whytube/models/jhmdb-i3d/classifier.safetensors" "$dir/"
        explainer 1 "$dir/classifier.safetensors"
        judge 1 0
    else
        "${whytube[@]}" train classifier --config "$config" --data "$out/jhmdb-$1" --out "$dir" \
            --save "$dir/classifier.json" "${quick[@]}"
        explainer "$1" "$dir/classifier.safetensors"
        judge "$1" "$others"
    fi
}

few_of() { # NAME OPTION ...: figures of a few clips of split 1
    "${whytube[@]}" evaluate --config "$config" --data "$out/jhmdb-1" --model "$out/i3d-1" --count "$few" \
        --out "$out/jhmdb-$1.json" --overwrite "${@:2}"
}

index() { # SPLIT
    [ -d "$out/jhmdb-$1" ] || "${whytube[@]}" data import jhmdb "$folder" --split "$1" --out "$out/jhmdb-$1"
}

boxed_only() { # FROM TO: the test clips of an index that have boxes of more than the actor
    mkdir -p "$2"
    cp "$1/attributes.csv" "$2/"
    awk -F, 'function name(path) { sub(/\.[^.]*$/, "", path); n = split(path, part, "/"); return part[n - 1] "/" part[n] }
        NR == FNR { if ($2 != "actor") boxed[$1] = 1; next }
        FNR == 1 || ($3 == "test" && name($1) in boxed)' "$1/boxes.csv" "$1/manifest.csv" >"$2/manifest.csv"
    kept_boxes "$1" "$2"
}

kept_boxes() { # FROM TO: boxes of the clips in the manifest of TO
    awk -F, 'function name(path) { sub(/\.[^.]*$/, "", path); n = split(path, part, "/"); return part[n - 1] "/" part[n] }
        NR == FNR { kept[name($1)] = 1; next }
        FNR == 1 || $1 in kept' "$2/manifest.csv" "$1/boxes.csv" >"$2/boxes.csv"
}

one_of_each_class() { # the first boxed test clip of every class of split 1
    index 1
    boxed_only "$out/jhmdb-1" "$out/jhmdb-boxed"
    mkdir -p "$out/jhmdb-boxed-peers"
    cp "$out/jhmdb-boxed/attributes.csv" "$out/jhmdb-boxed-peers/"
    awk -F, '!seen[$2]++' "$out/jhmdb-boxed/manifest.csv" >"$out/jhmdb-boxed-peers/manifest.csv"
    kept_boxes "$out/jhmdb-boxed" "$out/jhmdb-boxed-peers"
}

boxed_paper() { # MODEL NAME: the paper's objective for a network, and what it explains of a clip of every class
    local classifier=$1
    [ ! -d "$1" ] || classifier=$1/classifier.safetensors
    "${whytube[@]}" train explainer --data "$out/jhmdb-1" --classifier "$classifier" --objective paper --recipe paper-tuned \
        --clips "${PAPER_CLIPS:-9600}" --set batch_size=8 --distinct 660 --out "$out/$2/paper" \
        --resume "${quick[@]}"
    "${whytube[@]}" train explainer --data "$out/jhmdb-1" --classifier "$classifier" --objective paper-sgd --recipe paper \
        --clips "${LETTER_CLIPS:-1500}" --distinct 660 --out "$out/$2/paper-sgd" \
        --resume "${quick[@]}"
    "${whytube[@]}" evaluate --model "$1" --with "$out/$2/paper/explainer.safetensors" \
        --with "$out/$2/paper-sgd/explainer.safetensors" --fills "$fills" --data "$out/jhmdb-boxed-peers" --count 0 --negatives "${NEGATIVES:-3}" \
        --peers "${BESIDE:-ours-unverified,paper+verified,centre,detector-box,random-tube}" \
        --out "$out/jhmdb-$2.json" --resume
}

for stage in "${stages[@]}"; do
    case $stage in
    networks)
        for split in 1 2 3; do index "$split"; done
        running=()
        for split in 1 2 3; do
            network "$split" >"$out/i3d-$split.log" 2>&1 &
            running+=($!)
        done
        for process in "${running[@]}"; do wait "$process"; done
        "${results[@]}" pool "$out"/jhmdb-{1,2,3}.json --out "$out/jhmdb.json"
        ;;
    peers)
        few_of peers --effort normal --with "$out/i3d-1/paper/explainer.safetensors" --fills "$fills" \
            --with "$out/i3d-1/paper-sgd/explainer.safetensors" \
            --peers "all-peers,$due,ours-regions,predicted,random-verified,random-tube,centre,detector-box"
        ;;
    unerased)
        dir=$out/unerased-1
        "${whytube[@]}" train classifier --config "$config" --data "$out/jhmdb-1" --out "$dir" --set erase=0 \
            --save "$dir/classifier.json" "${quick[@]}"
        "${whytube[@]}" train explainer --config "$config" --data "$out/jhmdb-1" --out "$dir" "${quick[@]}"
        papers 1 "$dir"
        "${whytube[@]}" evaluate --config "$config" --data "$out/jhmdb-1" --model "$dir" --effort "$effort" --fills "$fills" \
            --with "$dir/paper/explainer.safetensors" --with "$dir/paper-sgd/explainer.safetensors" \
            --peers "$due,ours-regions,random-verified,grad-cam,centre,random-tube" --out "$out/jhmdb-unerased.json" --overwrite
        ;;
    effort)
        for tubes in ${TUBES:-4 8 16 32 64 128}; do
            few_of "effort-$tubes" --regions --effort "$tubes" --peers random-verified --tubes "$tubes"
        done
        ;;
    front)
        for weight in ${WEIGHTS:-0 0.3 1 3}; do
            few_of "front-$weight" --effort normal --fit-weight "$weight" --peers "" --count "${FRONT:-0}"
        done
        ;;
    boxed)
        index 1
        boxed_only "$out/jhmdb-1" "$out/jhmdb-boxed"
        for weight in ${WEIGHTS:-1 3}; do
            "${whytube[@]}" evaluate --model jhmdb-i3d --data "$out/jhmdb-boxed" --count 0 --negatives "${NEGATIVES:-3}" \
                --fit-weight "$weight" --peers "${BESIDE:-}" --out "$out/jhmdb-boxed-front-$weight.json" --resume
        done
        ;;
    boxed-peers)
        one_of_each_class
        "${whytube[@]}" evaluate --model jhmdb-i3d --data "$out/jhmdb-boxed-peers" --count 0 --negatives "${NEGATIVES:-3}" \
            --peers "${BESIDE:-ours-regions,predicted,random-verified,grad-cam-verified,gradient-input-verified,random-tube}" \
            --out "$out/jhmdb-boxed-peers.json" --resume
        ;;
    boxed-paper)
        one_of_each_class
        boxed_paper jhmdb-i3d boxed-paper
        ;;
    boxed-unerased)
        one_of_each_class
        dir=$out/boxed-unerased
        "${whytube[@]}" train classifier --data "$out/jhmdb-1" --pretrained i3d-kinetics-400 --recipe laptop --set erase=0 \
            --clips "${CLIPS:-1320}" --test 0 --out "$dir" --resume "${quick[@]}"
        "${whytube[@]}" train explainer --data "$out/jhmdb-1" --classifier "$dir/classifier.safetensors" --recipe converging \
            --clips "${EXPLAINER_CLIPS:-6400}" --set "masked_runs=${MASKED_RUNS:-1200}" --set lasting=0.75 --distinct 660 \
            --out "$dir" --resume "${quick[@]}"
        boxed_paper "$dir" boxed-unerased
        ;;
    *)
        echo "unknown stage $stage" >&2
        exit 2
        ;;
    esac
done
