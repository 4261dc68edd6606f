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
#   shipped   the shipped demo and the paper's objective for it: our methods (world-64.json), peers at equal cost
#             (world-64-peers.json), all negatives (world-64-negatives.json), quality over tubes tried (world-64-effort-N.json),
#             words against fidelity (world-64-front-W.json), and a network that forgot all (world-64-random-weights.json)
#   shipped-controls  of the shipped demo, for a CPU: insertion and deletion (world-64-curves.json), the same tubes on a network
#             of another seed, and the search on scores of chance (world-64-transfer.json), a network that learned training
#             clips by heart, with random labels (world-64-random-labels.json)
#
# networks also writes how often each network is right on JUDGED clips (world-classifiers.json), controls also the paper's
# protocol to the letter, tubes of any area (world-letter.json).
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
read -ra best <<<"${PAPER_BEST:-}"          # of it at its best alone, e.g. "--lr 3e-4", see studies/opponent.sh
clips=${CLIPS:-19200}
right=${RIGHT:-0.99}                  # of the validation clips: a network below goes on, with twice as many clips,
most=${MOST_CLIPS:-$((8 * clips))}    # but never with more than these
words=${EXPLAINER_CLIPS:-6000}
count=${COUNT:-192}
few=${FEW:-48} # clips where methods are many or the same is measured several times
judged=${JUDGED:-480} # clips that a classifier is judged on
effort=${EFFORT:-96} # tubes tried
area=${AREA:-0.066}  # of a tube, at most: that of a square of the paper's smaller side
masked=${MASKED_RUNS:-24000}
fills=mean,blur,freeze,zero # zero is the paper's
due=ours-unverified,paper+verified
peers=$due,ours-regions,predicted,random-verified,grad-cam,grad-cam-verified,centre,true-box,random-tube,random-attribute
at_once=${AT_ONCE:-64} # commands that share the machine, 1 on a CPU
read -ra seeds <<<"${SEEDS:-0 1 2}"
read -ra layers <<<"${FC:-1 2 3}"
read -ra stages <<<"${STAGES:-networks controls curves unerased shipped}"
mkdir -p "$out"
source "$(dirname "$0")/letter.bash"

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

papers() { # DIR SEED [CLASSIFIER]: the paper's objective at its best and to the letter, and the options that judge them, $with
    local classifier=${3:-$1/classifier.safetensors}
    local how=(--classifier "$classifier" --objective paper --seed "$2" --recipe paper-tuned --distinct 2000 "${paper_set[@]}")
    "${whytube[@]}" train explainer "${how[@]}" --out "$1/paper" --save "$1/paper.json" --clips "${PAPER_CLIPS:-15000}" "${best[@]}"
    "${whytube[@]}" train explainer "${how[@]}" --out "$1/paper-slow" --save "$1/paper-slow.json" \
        --clips "${PAPER_CLIPS:-15000}" --set optimizer=sgd --lr 1e-4
    letter --classifier "$classifier" --seed "$2" --out "$1/paper-sgd" --save "$1/paper-sgd.json" "${paper_set[@]}"
    with=(--with "$1/paper/explainer.safetensors" --with "paper:sgd=$1/paper-slow/explainer.safetensors"
        --with "$1/paper-sgd/explainer.safetensors" --fills "$fills")
}

network() { # SEED FC: a classifier with its explainers, judged
    local dir=$out/fc$2-seed$1 more=() with
    classifier "$dir" "$1" "$2"
    explainer "$dir" ours "$1" .
    papers "$dir" "$1"
    if [ "$2" = 1 ]; then
        explainer "$dir" ours "$1" permuted --permuted-table --set masked_runs=0
        more+=(--with "permuted-table=$dir/permuted/explainer.safetensors")
    fi
    if [ "$2" = 1 ] && [ "${ABLATIONS:-1}" = 1 ]; then
        explainer "$dir" two-sided "$1" two-sided
        explainer "$dir" ours+class "$1" ours+class
        more+=(--with "$dir/two-sided/explainer.safetensors" --with "$dir/ours+class/explainer.safetensors")
    fi
    "${whytube[@]}" evaluate --model "$dir" "${with[@]}" "${more[@]}" --count "$count" --seed "$1" --effort "$effort" \
        --area "$area" --peers "$peers" --out "$dir.json"
    if [ "${NEGATIVES:-1}" != 0 ]; then
        "${whytube[@]}" evaluate --model "$dir" "${with[@]}" --count "${NEGATIVES_COUNT:-48}" \
            --seed "$1" --effort quick --area "$area" --negatives all -k 3 --out "$dir-negatives.json" \
            --peers "$due,predicted,random-verified,grad-cam,centre,true-box,random-tube"
    fi
}

unerased() { # a small classifier that was trained without erased tubes, as the paper's were, and its explainers, judged
    local dir=$out/unerased with
    "${whytube[@]}" train classifier --recipe demo --set erase=0 --out "$dir" --half --save "$dir/classifier.json"
    explainer "$dir" ours 0 .
    papers "$dir" 0
    "${whytube[@]}" evaluate --model "$dir" "${with[@]}" --count "${CONTROL_COUNT:-96}" \
        --peers "$due,ours-regions,random-verified,grad-cam,centre,random-tube" --out "$out/world-64-unerased.json"
}

demo() { # OPTION ...: the shipped demo, judged
    "${whytube[@]}" evaluate --model demo --fills "$fills" "$@"
}

shipped() { # the shipped demo, with the paper's objective beside it
    local dir=$out/shipped with tubes weight
    papers "$dir" 0 demo
    told() { echo "demo $1 --out $out/$1.json ${*:2}"; } # NAME OPTION ...
    all < <(
        told world-64 "${with[@]}" --count "$count" --effort "$effort" --area "$area" --peers "$peers,shuffled-attributes"
        told world-64-peers "${with[@]}" --count "$few" --effort normal \
            --peers "all-peers,$due,ours-regions,predicted,random-verified,random-tube,centre"
        told world-64-negatives "${with[@]}" --count "${NEGATIVES_COUNT:-48}" --effort quick --negatives all -k 3 \
            --peers "$due,predicted,random-verified,grad-cam,centre,true-box,random-tube"
        for tubes in ${TUBES:-4 8 16 32 64 128 192}; do # random-verified tries as many as cost the same
            told "world-64-effort-$tubes" --count "$few" --regions --effort "$tubes" --area "$area" --peers random-verified
        done
        for weight in ${WEIGHTS:-0 0.3 1 3}; do
            told "world-64-front-$weight" --count "$few" --effort normal --area "$area" --fit-weight "$weight" --peers=
        done
        told world-64-random-weights --count "$few" --effort normal --random-weights --peers random-tube,shuffled-scores
    )
}

control() { # SEED NEXT: what else is asked of the network with one fc layer
    local dir=$out/fc1-seed$1 blank=$out/random-labels-seed$1 few=("--count" "${CONTROL_COUNT:-96}" "--seed" "$1")
    local peers=grad-cam,random-tube,random-verified
    "${whytube[@]}" evaluate --model "$dir" "${few[@]}" --area 1 --effort quick --fills "$fills" \
        --with "$dir/paper/explainer.safetensors" --with "$dir/paper-sgd/explainer.safetensors" \
        --peers "$due,centre,random-tube,true-box" --out "$dir-letter.json"
    "${whytube[@]}" evaluate --model "$dir" "${few[@]}" --peers "$peers" --curves -k 3 --out "$dir-curves.json"
    "${whytube[@]}" evaluate --model "$dir" "${few[@]}" --peers "$peers,shuffled-scores" --fills mean,blur,freeze,zero,still,shift \
        --judge-with "$out/fc1-seed$2" --out "$dir-transfer.json"
    "${whytube[@]}" evaluate --model "$dir" "${few[@]}" --peers "$peers" --random-weights --out "$dir-random-weights.json"
    "${whytube[@]}" train classifier --preset "$preset" "${settings[@]}" "${recipe[@]}" --clips "$clips" --distinct 48 \
        --fc-layers 1 --seed "$1" --out "$blank" --test "$judged" --random-labels
    "${whytube[@]}" evaluate --model "$blank" "${few[@]}" --peers "$peers" --out "$dir-random-labels.json"
}

shipped_controls() { # what the figures of the shipped demo are worth once their cause is taken away
    local dir=$out/shipped-controls few=("--count" "${CONTROL_COUNT:-96}" "--area" "$area")
    local peers=ours-regions,grad-cam,grad-cam-verified,random-verified,centre,random-tube
    mkdir -p "$dir"
    demo "${few[@]}" --peers "$peers" --curves -k 3 --out "$out/world-64-curves.json" --resume
    [ -d "$dir/seed1" ] || "${whytube[@]}" train classifier --recipe demo --seed 1 --out "$dir/seed1" --save "$dir/seed1.json"
    demo "${few[@]}" --peers "$peers,shuffled-scores" --judge-with "$dir/seed1" --out "$out/world-64-transfer.json" --resume
    if [ ! -f "$dir/blank/explainer.safetensors" ]; then
        "${whytube[@]}" train classifier --recipe demo --random-labels --distinct 48 --clips 9600 --out "$dir/blank" \
            --save "$dir/blank.json" --resume
        "${whytube[@]}" train explainer --recipe demo --out "$dir/blank" --resume
    fi
    "${whytube[@]}" evaluate --model "$dir/blank" "${few[@]}" --fills "$fills" --peers "$peers" --out "$out/world-64-random-labels.json" --resume
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

all() { # COMMAND NAME ARGUMENTS, a line each: AT_ONCE at once, each with a log; ends once all have ended, wrong if one did
    local running=() process command name arguments
    while read -r command name arguments; do
        if ((${#running[@]} >= at_once)); then
            wait "${running[0]}"
            running=("${running[@]:1}")
        fi
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
        right=()
        for fc in "${layers[@]}"; do
            for seed in "${seeds[@]}"; do right+=("fc$fc, seed $seed=$out/fc$fc-seed$seed/classifier.json"); done
        done
        "${results[@]}" curves "${right[@]}" --out "$out/world-classifiers.json"
        ;;
    controls)
        all < <(for place in "${!seeds[@]}"; do
            echo "control controls-seed${seeds[place]} ${seeds[place]} ${seeds[((place + 1) % ${#seeds[@]})]}"
        done)
        files=("${seeds[@]/#/$out/fc1-seed}")
        for control in letter curves transfer random-weights random-labels; do
            pool "world-$control" "${files[@]/%/-$control.json}"
        done
        ;;
    curves | unerased | shipped)
        all <<<"$stage $stage"
        ;;
    shipped-controls)
        shipped_controls
        ;;
    *)
        echo "unknown stage $stage" >&2
        exit 2
        ;;
    esac
done
