#!/usr/bin/env bash
# The study of the embedded world behind results/world*.json and results/explainer-curves.json. Several runs share the
# GPU. Usage: studies/world.sh OUT
#
# STAGES names what is done, in this order:
#   networks  the paper's network at full size with one to three fc layers (FC), three seeds each (SEEDS), all trained until
#             equally right (two and three layers begin with the convolutions of one); the paper's objective, ours and its
#             controls (world.json, world-fc2.json, world-fc3.json); unless NEGATIVES=0, also all negatives of fewer clips,
#             three pairs each, the paper's Fig. 5 (world-negatives.json, world-fc2-negatives.json, ...)
#   controls  with one fc layer: insertion and deletion (world-curves.json), the same tubes on the network of the next seed
#             (world-transfer.json), networks that have learned nothing (world-random-weights.json, world-random-labels.json)
#   curves    losses of the objectives on the shipped classifier (explainer-curves.json)
#   unerased  a small network that was trained without erased tubes (world-64-unerased.json)
#
# On two CPU cores, with a network of an eighth of the channels on the paper's clips and grids (docs/world.md):
#   OMP_NUM_THREADS=1 PRESET=c3d-resnet-small SETTINGS="--set size=112,112 --set pools=2,2,1,2" RECIPE="--recipe demo" \
#   CLIPS=16000 RIGHT=0.97 JUDGED=240 EXPLAINER_CLIPS=5400 MASKED_RUNS=12000 PAPER_CLIPS=3200 PAPER_SET="--set batch_size=4" \
#   LETTER_CLIPS=24 COUNT=32 NEGATIVES_COUNT=8 CONTROL_COUNT=12 ABLATIONS=0 STAGES="networks controls" studies/world.sh OUT
set -euo pipefail
out=${1:?usage: studies/world.sh OUT}
read -ra whytube <<<"${WHYTUBE:-whytube}"
results=("${PYTHON:-python}" "$(dirname "$0")/results.py") # PYTHON: one that has whytube
preset=${PRESET:-c3d-resnet}
read -ra settings <<<"${SETTINGS:-}"        # of the network, e.g. "--set size=112,112 --set pools=2,2,1,2"
read -ra recipe <<<"${RECIPE:---recipe world --lr 1e-3}" # of classifiers
read -ra paper_set <<<"${PAPER_SET:-}"      # of the paper's objective, e.g. "--set batch_size=4" on a CPU
clips=${CLIPS:-19200}
right=${RIGHT:-0.99}                  # of the validation clips: a network below goes on, with twice as many clips,
most=${MOST_CLIPS:-$((8 * clips))}    # but never with more than these
words=${EXPLAINER_CLIPS:-6000}
count=${COUNT:-192}
judged=${JUDGED:-480} # clips that a classifier is judged on
effort=${EFFORT:-96} # tubes tried
area=${AREA:-0.066}  # of a tube, at most: that of a square of the paper's smaller side
masked=${MASKED_RUNS:-24000}
fills=mean,blur,freeze,zero # zero is the paper's
due=ours-unverified,paper+verified,paper-sgd+verified
peers=$due,ours-regions,predicted,random-verified,grad-cam,grad-cam-verified,centre,true-box,random-tube,random-attribute
read -ra seeds <<<"${SEEDS:-0 1 2}"
read -ra layers <<<"${FC:-1 2 3}"
read -ra stages <<<"${STAGES:-networks controls curves unerased}"
mkdir -p "$out"

explainer() { # DIR OBJECTIVE SEED FOLDER [OPTION ...]
    "${whytube[@]}" train explainer --classifier "$1/classifier.safetensors" --objective "$2" --seed "$3" --out "$1/$4" \
        --recipe converging --clips "$words" --distinct 2000 --set masked_runs="$masked" "${@:5}"
}

classifier() { # DIR SEED FC: trained until it is right often enough, so that networks differ in their layers alone
    local shown=$clips begun=$out/fc1-seed$2/classifier.safetensors from=() status
    if [ "$3" != 1 ] && [ -f "$begun" ]; then from=(--pretrained "$begun"); fi
    while true; do
        "${whytube[@]}" train classifier --preset "$preset" "${settings[@]}" "${recipe[@]}" --clips "$shown" \
            --distinct $((shown < 48000 ? (shown + 2) / 3 : 16000)) --fc-layers "$3" --seed "$2" --out "$1" \
            --test "$judged" --val "$judged" --save "$1/classifier.json" "${from[@]}"
        status=0
        "${results[@]}" right "$1/classifier.json" --least "$right" || status=$?
        if [ $status = 0 ]; then return; fi
        if [ $status != 1 ]; then exit $status; fi
        if ((2 * shown > most)); then
            echo "fc$3, seed $2: below $right after $shown clips" >&2
            return
        fi
        ((shown *= 2))
        from=(--pretrained "$1/classifier.safetensors" --overwrite)
    done
}

papers() { # DIR SEED: the paper's objective at its best and to the letter
    "${whytube[@]}" train explainer --classifier "$1/classifier.safetensors" --objective paper --seed "$2" --out "$1/paper" \
        --recipe paper-tuned --distinct 2000 --clips "${PAPER_CLIPS:-30000}" "${paper_set[@]}"
    "${whytube[@]}" train explainer --classifier "$1/classifier.safetensors" --objective paper-sgd --seed "$2" \
        --out "$1/paper-sgd" --recipe paper --clips "${LETTER_CLIPS:-1500}" "${paper_set[@]}"
}

network() { # SEED FC: a classifier with its explainers, judged
    local dir=$out/fc$2-seed$1 more=()
    classifier "$dir" "$1" "$2"
    explainer "$dir" ours "$1" .
    papers "$dir" "$1"
    more+=(--with "$dir/paper/explainer.safetensors" --with "$dir/paper-sgd/explainer.safetensors")
    if [ "$2" = 1 ]; then
        explainer "$dir" ours "$1" permuted --permuted-table --set masked_runs=0
        more+=(--with "permuted-table=$dir/permuted/explainer.safetensors")
    fi
    if [ "$2" = 1 ] && [ "${ABLATIONS:-1}" = 1 ]; then
        explainer "$dir" two-sided "$1" two-sided
        explainer "$dir" ours+class "$1" ours+class
        more+=(--with "$dir/two-sided/explainer.safetensors" --with "$dir/ours+class/explainer.safetensors")
    fi
    "${whytube[@]}" evaluate --model "$dir" "${more[@]}" --count "$count" --seed "$1" --effort "$effort" --area "$area" \
        --fills "$fills" --peers "$peers" --out "$dir.json"
    if [ "${NEGATIVES:-1}" != 0 ]; then
        "${whytube[@]}" evaluate --model "$dir" --with "$dir/paper/explainer.safetensors" --count "${NEGATIVES_COUNT:-48}" \
            --seed "$1" --effort quick --area "$area" --negatives all -k 3 --out "$dir-negatives.json" \
            --peers predicted,random-verified,grad-cam,centre,true-box,random-tube
    fi
}

unerased() { # a small classifier that was trained without erased tubes, as the paper's were, and its explainers, judged
    local dir=$out/unerased
    "${whytube[@]}" train classifier --recipe demo --set erase=0 --out "$dir" --half
    explainer "$dir" ours 0 .
    papers "$dir" 0
    "${whytube[@]}" evaluate --model "$dir" --with "$dir/paper/explainer.safetensors" --with "$dir/paper-sgd/explainer.safetensors" \
        --count "${CONTROL_COUNT:-96}" --fills "$fills" --peers "$due,ours-regions,random-verified,grad-cam,centre,random-tube" \
        --out "$out/world-64-unerased.json"
}

control() { # SEED NEXT: what else is asked of the network with one fc layer
    local dir=$out/fc1-seed$1 blank=$out/random-labels-seed$1 few=("--count" "${CONTROL_COUNT:-96}" "--seed" "$1")
    local peers=grad-cam,random-tube,random-verified
    "${whytube[@]}" evaluate --model "$dir" "${few[@]}" --peers "$peers" --curves -k 3 --out "$dir-curves.json"
    "${whytube[@]}" evaluate --model "$dir" "${few[@]}" --peers "$peers,shuffled-scores" --fills mean,blur,freeze,zero,noise \
        --judge-with "$out/fc1-seed$2" --out "$dir-transfer.json"
    "${whytube[@]}" evaluate --model "$dir" "${few[@]}" --peers "$peers" --random-weights --out "$dir-random-weights.json"
    "${whytube[@]}" train classifier --preset "$preset" "${settings[@]}" "${recipe[@]}" --clips "$clips" --distinct 6400 \
        --fc-layers 1 --seed "$1" --out "$blank" --test "$judged" --random-labels
    "${whytube[@]}" evaluate --model "$blank" "${few[@]}" --peers "$peers" --out "$dir-random-labels.json"
}

curves() { # the losses of the objectives on the shipped classifier
    local dir=$out/curves
    small() { # NAME OBJECTIVE RECIPE CLIPS
        "${whytube[@]}" train explainer --classifier demo --objective "$2" --recipe "$3" --clips "$4" \
            --out "$dir/$1" --save "$dir/$1.json"
    }
    small ours ours converging "${CURVE_CLIPS:-30000}"
    small ours+class ours+class converging "${CURVE_CLIPS:-30000}"
    small two-sided two-sided converging "${CURVE_CLIPS:-15000}"
    small paper paper paper-tuned "${CURVE_CLIPS:-30000}"
    small paper-sgd paper-sgd paper "${CURVE_CLIPS:-1500}"
    "${results[@]}" curves "paper-sgd, paper recipe (SGD, 0.1)=$dir/paper-sgd.json" \
        "paper, paper-tuned recipe=$dir/paper.json" "two-sided objective, converging recipe=$dir/two-sided.json" \
        "ours, converging recipe=$dir/ours.json" "ours+class, converging recipe=$dir/ours+class.json" \
        --out "$out/explainer-curves.json"
}

all() { # COMMAND NAME ARGUMENTS, a line each: all at once, each with a log; ends once all have ended, wrong if one did
    local running=() process command name arguments
    while read -r command name arguments; do
        # shellcheck disable=SC2086 # arguments are words
        "$command" $arguments >"$out/$name.log" 2>&1 &
        running+=($!)
    done
    for process in "${running[@]}"; do wait "$process"; done
}

pool() { # NAME FILE ...
    "${results[@]}" pool "${@:2}" --out "$out/$1.json"
}

for stage in "${stages[@]}"; do
    case $stage in
    networks)
        for fc in "${layers[@]}"; do
            all < <(for seed in "${seeds[@]}"; do echo "network fc$fc-seed$seed $seed $fc"; done)
            files=("${seeds[@]/#/$out/fc$fc-seed}")
            name=world
            [ "$fc" = 1 ] || name=world-fc$fc
            pool "$name" "${files[@]/%/.json}"
            [ "${NEGATIVES:-1}" = 0 ] || pool "$name-negatives" "${files[@]/%/-negatives.json}"
        done
        ;;
    controls)
        all < <(for place in "${!seeds[@]}"; do
            echo "control controls-seed${seeds[place]} ${seeds[place]} ${seeds[((place + 1) % ${#seeds[@]})]}"
        done)
        files=("${seeds[@]/#/$out/fc1-seed}")
        for control in curves transfer random-weights random-labels; do
            pool "world-$control" "${files[@]/%/-$control.json}"
        done
        ;;
    curves | unerased)
        all <<<"$stage $stage"
        ;;
    *)
        echo "unknown stage $stage" >&2
        exit 2
        ;;
    esac
done
