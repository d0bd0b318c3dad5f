#!/usr/bin/env bash
# Checks that #includes point down only, by the list in scripts/layers.txt.
set -euo pipefail
cd "$(dirname "$0")/.."

mapfile -t files < <(git ls-files --cached --others --exclude-standard '*.[ch]' '*.def' '*.cu' '*.cuh')
grep -HEn '^[[:space:]]*#[[:space:]]*include[[:space:]]*["<]' "${files[@]}" /dev/null |
    awk -v filelist="$(printf '%s\n' "${files[@]}")" '
function dirname(path) { return sub("/[^/]*$", "", path) ? path : "." }
function layer_of(path, i, best) {
    best = 0
    for (i = 1; i <= folders; i++)
        if (index(path, folder[i] "/") == 1 && (!best || length(folder[i]) > length(folder[best])))
            best = i
    return best ? folder_layer[best] : 0
}
# The project file that "#include name" in a file of folder dir means, or "".
function resolve(dir, name, i, path) {
    for (i = 1; i <= roots; i++) {
        path = (root[i] == "." ? dir : root[i]) "/" name
        sub("^/", "", path)
        while (sub("[^/]+/[.][.]/", "", path));
        if (path in exists) return path
    }
    return ""
}
function allowed_only(name, path, i, j, n, part, pattern, ok) {
    ok = 1
    for (i = 1; i <= onlies; i++) {
        n = split(only[i], part, " ")
        pattern = part[2]
        gsub("[.]", "[.]", pattern); gsub("[*]", ".*", pattern)
        if (name !~ "(^|/)" pattern "$") continue
        ok = 0
        for (j = 3; j <= n; j++) if (index(path, part[j] "/") == 1) ok = 1
        if (!ok) return 0
    }
    return ok
}
function complain(text) { print where ": " text; failed++ }
BEGIN {
    n = split(filelist, list, "\n")
    for (i = 1; i <= n; i++) exists[list[i]] = 1
    roots = split(".|src|include|/|tests", root, "|")
    sub("/", "", root[4])
    while ((getline line < "scripts/layers.txt") > 0) {
        n = split(line, word, " ")
        if (word[1] == "layer") {
            layers++; layer_name[layers] = word[2]; rank[word[2]] = layers; excluding = 0
            for (i = 3; i <= n; i++) {
                if (word[i] == "not") excluding = 1
                else if (excluding) banned[layers, rank[word[i]]] = 1
                else { folder[++folders] = word[i]; folder_layer[folders] = layers }
            }
        } else if (word[1] == "only") only[++onlies] = line
    }
}
{
    split($0, field, ":")
    file = field[1]; where = file ":" field[2]
    name = $0
    sub("^[^<\"]*[<\"]", "", name); sub("[>\"].*$", "", name)
    checked++
    own = layer_of(file)
    if (!own) { complain("no layer in scripts/layers.txt holds this file"); next }
    if (!allowed_only(name, file)) complain("<" name "> may not be included here (scripts/layers.txt)")
    if (name == "tssa.h" || name == "ir/op_ids.h" || name ~ /[.](pb-c[.]h|inc)$/) next # all but the first are made
    target = resolve(dirname(file), name)
    if (target == "") {
        if ($0 ~ "include[ \t]*\"") complain("\"" name "\" is no file of the project")
        next
    }
    other = layer_of(target)
    if (!other) complain(target " is in no layer")
    else if (other > own || (own, other) in banned)
        complain("layer " layer_name[own] " may not include " target " of layer " layer_name[other])
}
END {
    if (!failed) printf "layers: %d includes, all point down\n", checked
    exit failed > 0
}'
