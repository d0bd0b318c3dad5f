# shellcheck shell=bash
# Completion for tssa's programs, from what their --help says: options; the words that one may be given
# (npy|pb); passes; folders; files.

# The options of $1, each with what follows it: "--output-format=npy|pb".
_tssa_options() {
    "$1" --help 2>/dev/null | grep -oE -e '^ +(-[A-Za-z], +)?--[a-z0-9-]+(\[?=[^] ]+\]?)?' |
        grep -oE -e '--[^ ]+' | tr -d '[]'
}

_tssa_passes() {
    "$1" --print-passes 2>/dev/null | awk 'NF == 0 { exit } { print $1 }'
}

_tssa() {
    local program=$1 word=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD - 1]} value='' words=''
    COMPREPLY=()
    # bash breaks words at "=".
    if [[ $option == '=' ]]; then
        option=${COMP_WORDS[COMP_CWORD - 2]}
    elif [[ $word == '=' ]]; then
        word=''
    fi
    if [[ $option == --* ]]; then
        value=$(_tssa_options "$program" | sed -n "s/^$option=//p" | head -n 1)
    fi
    if [[ $word == -* && -z $value ]]; then
        words=$(_tssa_options "$program" | sed 's/=.*//' | sort -u)
    elif [[ $value == DIR ]]; then
        mapfile -t COMPREPLY < <(compgen -d -- "$word")
        return
    elif [[ $value =~ ^(P|PASS|PASS\|all|A,B,C)$ ]]; then
        words=$(_tssa_passes "$program")
        [[ $value != *all ]] || words+=' all'
    elif [[ $value =~ ^[a-z0-9|]+$ ]]; then
        words=${value//|/ }
    else
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        return
    fi
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}

complete -o filenames -F _tssa tssa-run tssa-opt tssa-bench
