# Sourced by jhmdb.sh and world.sh, which set `whytube`, the words of the command.

letter() { # OPTION ...: paper-sgd, which diverges; half as long where its loss is no longer finite, until it is
    local clips=${LETTER_CLIPS:-1500} again=() said
    while ! said=$("${whytube[@]}" train explainer --objective paper-sgd --recipe paper --clips "$clips" "$@" "${again[@]}" 2>&1); do
        echo "$said" >&2
        if [[ $said != *"training diverged"* ]] || ((clips < 120)); then return 1; fi
        clips=$((clips / 2)) again=(--overwrite)
    done
    echo "$said"
}
