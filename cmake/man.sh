#!/bin/sh
# Usage: man.sh HELP2MAN PROGRAM OUT
# A man page from what the program's --help says, whose first sentence is the NAME.
set -eu
ARGP_HELP_FMT=rmargin=1000 # no line breaks of its own
export ARGP_HELP_FMT
what=$("$2" --help | sed -n '2{s/^\(.\)\(.*\)\.$/\1\2/;p;}')
first=$(printf %.1s "$what" | tr '[:upper:]' '[:lower:]')
"$1" --no-info --name="$first${what#?}" --output="$3" "$2"
