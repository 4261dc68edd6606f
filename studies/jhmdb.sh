#!/usr/bin/env bash
# The study of J-HMDB: I3D on splits 1 to 3 (the shipped model on split 1; the others are fine-tuned here), their
# explainers, and all figures behind results/jhmdb*.json. Runs share the GPU. Usage: studies/jhmdb.sh JHMDB OUT
#
# STAGES names what is done, in this order: networks (of SPLITS, trained and explained unless they are there, each judged
# once it is done: jhmdb-1.json, jhmdb-2.json, jhmdb-3.json, pooled in jhmdb.json), peers (the paper's objective and all
# peers at equal cost, jhmdb-peers.json), unerased (a network trained without erased tubes, jhmdb-unerased.json), effort
# (quality over tubes tried, jhmdb-effort-N.json), front (words against fidelity, jhmdb-front-W.json), boxed (the same with
# the shipped model, on the test clips with boxes of parts alone, jhmdb-boxed-front-W.json), and, for a CPU, on one test
# clip of every class: boxed-all-peers (every peer, one shot and verified, about the runner-up alone,
# jhmdb-boxed-all-peers.json), boxed-curves (insertion and deletion, jhmdb-curves.json), boxed-paper (the paper's objective
# for the shipped classifier, with and without our search, jhmdb-boxed-paper.json), boxed-unerased (the same for a network
# that was trained without erased tubes, jhmdb-boxed-unerased.json), splits (SPLITS: the shipped classifier on split 1, I3D
# with a new head on the others, with all of these methods: jhmdb-each-1.json and so on, pooled in jhmdb-each.json).
set -euo pipefail
folder=${1:?usage: studies/jhmdb.sh JHMDB OUT} out=${2:?usage: studies/jhmdb.sh JHMDB OUT}
config=$(dirname "$0")/../configs/jhmdb-i3d.toml
read -ra whytube <<<"${WHYTUBE:-whytube}"
results=("${PYTHON:-python}" "$(dirname "$0")/results.py") # PYTHON: one that has whytube
read -ra stages <<<"${STAGES:-networks peers unerased effort front}"
read -ra quick <<<"${QUICK:-}" # options of trainings, e.g. --clips 64, to try the script
read -ra best <<<"${PAPER_BEST:-}" # of the paper's objective at its best, e.g. "--lr 3e-4", see studies/opponent.sh
effort=${EFFORT:-96}           # tubes tried where answers are judged
others=${OTHERS:-0}            # clips judged of splits 2 and 3, 0 for all; FIRST are those of split 1
shared=${SHARED:-0}            # more than 0: of splits 2 and 3 at most so many of a class, of those that split 1 tests, too
few=${FEW:-48}                 # clips judged by peers, effort and front
fills=mean,blur,freeze,zero    # zero is the paper's
due=ours-unverified,paper+verified
shares=${SHARES:-1}            # processes that judge one network at once
alone=ours-unverified,paper+verified,centre,detector-box,random-tube # where a CPU judges the paper's objective
main=$due,ours-regions,predicted,random-verified,grad-cam-verified,grad-cam,centre,detector-box,random-tube,random-attribute,shuffled-attributes
mkdir -p "$out"
source "$(dirname "$0")/letter.bash"

explainer() { # SPLIT CLASSIFIER
    if [ -f "$out/i3d-$1/explainer.safetensors" ]; then return; fi
    "${whytube[@]}" train explainer --config "$config" --data "$out/jhmdb-$1" --classifier "$2" --out "$out/i3d-$1" \
        --save "$out/i3d-$1/explainer.json" "${quick[@]}"
}

papers() { # SPLIT FOLDER: the paper's objective for the classifier in a folder, at its best and to the letter
    if [ -f "$2/paper-sgd/explainer.safetensors" ]; then return; fi # the last one
    local how=(--config "$config" --data "$out/jhmdb-$1" --classifier "$2/classifier.safetensors" --objective paper
        --recipe paper-tuned --clips "${PAPER_CLIPS:-15000}")
    "${whytube[@]}" train explainer "${how[@]}" "${best[@]}" --out "$2/paper" --save "$2/paper.json" "${quick[@]}"
    "${whytube[@]}" train explainer "${how[@]}" --set optimizer=sgd --lr 1e-4 --out "$2/paper-slow" --save "$2/paper-slow.json" "${quick[@]}"
    letter --config "$config" --data "$out/jhmdb-$1" --classifier "$2/classifier.safetensors" --out "$2/paper-sgd" \
        --save "$2/paper-sgd.json" "${quick[@]}"
}

judge() { # SPLIT COUNT
    local dir=$out/i3d-$1 data=$out/jhmdb-$1 shares=$shares
    papers "$1" "$dir"
    if [ "$1" != 1 ] && ((shared)); then
        shared_with_first "$1"
        data=$data-shared shares=1
    fi
    judged "$out/jhmdb-$1.json" --config "$config" --data "$data" --model "$dir" --count "$2" --effort "$effort" \
        --with "$dir/paper/explainer.safetensors" --with "paper:sgd=$dir/paper-slow/explainer.safetensors" \
        --with "$dir/paper-sgd/explainer.safetensors" --fills "$fills" --peers "$main"
}

judged() { # FILE.json OPTION ...: evaluate, the clips shared among processes; goes on where it was stopped
    local running=() process i failed=0
    if [ -f "$1" ]; then return; fi
    if ((shares > 1)) && [ ! -f "$1.part.safetensors" ]; then
        for ((i = 1; i <= shares; i++)); do
            "${whytube[@]}" evaluate "${@:2}" --out "$1" --share "$i/$shares" --resume &
            running+=($!)
        done
        for process in "${running[@]}"; do wait "$process" || failed=$?; done
        if ((failed)); then return "$failed"; fi
    fi
    "${whytube[@]}" evaluate "${@:2}" --out "$1" --resume
}

network() { # SPLIT
    local dir=$out/i3d-$1
    mkdir -p "$dir"
    if [ "$1" = 1 ]; then
        cp "$(dirname "$0")"/../src/whytube/models/jhmdb-i3d/{classifier,explainer}.safetensors "$dir/"
        judge 1 "${FIRST:-0}"
    else
        [ -f "$dir/classifier.safetensors" ] || "${whytube[@]}" train classifier --config "$config" --data "$out/jhmdb-$1" \
            --out "$dir" --save "$dir/classifier.json" "${quick[@]}"
        explainer "$1" "$dir/classifier.safetensors"
        judge "$1" "$others"
    fi
}

few_of() { # NAME OPTION ...: figures of a few clips of split 1
    "${whytube[@]}" evaluate --config "$config" --data "$out/jhmdb-1" --model jhmdb-i3d --count "$few" --negatives "${NEGATIVES:-3}" \
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

shared_with_first() { # SPLIT: test clips that split 1 tests, too; what tubes are ranked by was chosen on others
    mkdir -p "$out/jhmdb-$1-shared"
    cp "$out/jhmdb-$1/attributes.csv" "$out/jhmdb-$1-shared/"
    awk -F, -v most="$shared" 'NR == FNR { if ($3 == "test") first[$1] = 1; next }
        FNR == 1 || ($3 == "test" && $1 in first && seen[$2]++ < most)' \
        "$out/jhmdb-1/manifest.csv" "$out/jhmdb-$1/manifest.csv" >"$out/jhmdb-$1-shared/manifest.csv"
    kept_boxes "$out/jhmdb-$1" "$out/jhmdb-$1-shared"
}

one_of_each_class() { # SPLIT: a test clip of every class, with boxes of parts where one has them
    index "$1"
    boxed_only "$out/jhmdb-$1" "$out/jhmdb-$1-boxed"
    mkdir -p "$out/jhmdb-$1-each"
    cp "$out/jhmdb-$1/attributes.csv" "$out/jhmdb-$1-each/"
    awk -F, '(FNR == 1 && NR == 1) || ($3 == "test" && !seen[$2]++)' \
        "$out/jhmdb-$1-boxed/manifest.csv" "$out/jhmdb-$1/manifest.csv" >"$out/jhmdb-$1-each/manifest.csv"
    kept_boxes "$out/jhmdb-$1" "$out/jhmdb-$1-each"
}

laptop() { # SPLIT FOLDER OPTION ...: a network whose head alone is trained, and its explainer, as a CPU makes them
    "${whytube[@]}" train classifier --data "$out/jhmdb-$1" --pretrained i3d-kinetics-400 --recipe laptop \
        --clips "${CLIPS:-1320}" --test 0 --out "$2" --resume "${@:3}" "${quick[@]}"
    "${whytube[@]}" train explainer --data "$out/jhmdb-$1" --classifier "$2/classifier.safetensors" --recipe converging \
        --clips "${EXPLAINER_CLIPS:-6400}" --set "masked_runs=${MASKED_RUNS:-1200}" --set lasting=0.75 --distinct 660 \
        --out "$2" --resume "${quick[@]}"
}

each() { # SPLIT MODEL FOLDER NAME PEERS: the paper's objective for a network, and what explains a clip of every class
    local classifier=$2
    [ ! -d "$2" ] || classifier=$2/classifier.safetensors
    "${whytube[@]}" train explainer --data "$out/jhmdb-$1" --classifier "$classifier" --objective paper --recipe paper-tuned \
        --clips "${PAPER_CLIPS:-9600}" --set batch_size=8 --distinct 660 "${best[@]}" --out "$3/paper" --resume "${quick[@]}"
    "${whytube[@]}" train explainer --data "$out/jhmdb-$1" --classifier "$classifier" --objective paper-sgd --recipe paper \
        --clips "${LETTER_CLIPS:-1500}" --distinct 660 --out "$3/paper-sgd" --resume "${quick[@]}"
    "${whytube[@]}" evaluate --model "$2" --with "$3/paper/explainer.safetensors" --with "$3/paper-sgd/explainer.safetensors" \
        --data "$out/jhmdb-$1-each" --count 0 --negatives "${NEGATIVES:-3}" --fills "$fills" --peers "${BESIDE:-$5}" \
        --out "$out/jhmdb-$4.json" --resume
}

for stage in "${stages[@]}"; do
    case $stage in
    networks)
        if ((shared)); then index 1; fi # before the splits that look into it
        for split in ${SPLITS:-1 2 3}; do index "$split"; done
        running=()
        for split in ${SPLITS:-1 2 3}; do
            network "$split" >"$out/i3d-$split.log" 2>&1 &
            running+=($!)
        done
        for process in "${running[@]}"; do wait "$process"; done
        [ -n "${SPLITS:-}" ] || "${results[@]}" pool "$out"/jhmdb-{1,2,3}.json --out "$out/jhmdb.json"
        ;;
    peers) # after networks, which trains the paper's explainers
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
        index 1
        for tubes in ${TUBES:-4 8 16 32 64 128 192}; do # random-verified tries as many as cost the same
            few_of "effort-$tubes" --regions --effort "$tubes" --peers random-verified
        done
        ;;
    front)
        index 1
        for weight in ${WEIGHTS:-0 0.3 1 3}; do
            few_of "front-$weight" --effort normal --fit-weight "$weight" --peers "" --count "${FRONT:-0}"
        done
        ;;
    boxed)
        index 1
        boxed_only "$out/jhmdb-1" "$out/jhmdb-1-boxed"
        for weight in ${WEIGHTS:-1 3}; do
            "${whytube[@]}" evaluate --model jhmdb-i3d --data "$out/jhmdb-1-boxed" --count 0 --negatives "${NEGATIVES:-3}" \
                --fit-weight "$weight" --fills "$fills" --peers "${BESIDE:-}" --out "$out/jhmdb-boxed-front-$weight.json" --resume
        done
        ;;
    boxed-all-peers)
        one_of_each_class 1
        "${whytube[@]}" evaluate --model jhmdb-i3d --data "$out/jhmdb-1-each" --count 0 --negatives "${NEGATIVES:-1}" --fills "$fills" \
            --peers "${BESIDE:-all-peers,ours-regions,predicted,random-verified,random-tube,centre}" \
            --out "$out/jhmdb-boxed-all-peers.json" --resume
        ;;
    boxed-curves)
        one_of_each_class 1
        "${whytube[@]}" evaluate --model jhmdb-i3d --data "$out/jhmdb-1-each" --count 0 --negatives "${NEGATIVES:-1}" --fills "$fills" \
            --peers "${BESIDE:-ours-regions,grad-cam,grad-cam-verified,random-verified,random-tube}" --curves -k 3 \
            --out "$out/jhmdb-curves.json" --resume
        ;;
    boxed-paper)
        one_of_each_class 1
        each 1 jhmdb-i3d "$out/boxed-paper" boxed-paper "$alone"
        ;;
    boxed-unerased)
        one_of_each_class 1
        laptop 1 "$out/boxed-unerased" --set erase=0
        each 1 "$out/boxed-unerased" "$out/boxed-unerased" boxed-unerased "$alone"
        ;;
    splits)
        for split in ${SPLITS:-1 2 3}; do
            one_of_each_class "$split"
            dir=$out/laptop-$split model=$out/laptop-$split
            if [ "$split" = 1 ]; then model=jhmdb-i3d; else laptop "$split" "$dir"; fi
            each "$split" "$model" "$dir" "each-$split" "$alone,ours-regions,predicted,random-verified,grad-cam,grad-cam-verified,random-attribute,shuffled-attributes"
        done
        judged=("$out"/jhmdb-each-[123].json)
        if [ ${#judged[@]} = 3 ]; then "${results[@]}" pool "${judged[@]}" --out "$out/jhmdb-each.json"; fi
        ;;
    *)
        echo "unknown stage $stage" >&2
        exit 2
        ;;
    esac
done
