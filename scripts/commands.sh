# shellcheck shell=bash
# To be sourced: what build/release is compiled by, for tools that are clang's.

# compile_commands.json without what GCC alone knows.
clang_commands() {
    sed -E 's/ -mmem(set|cpy)-strategy=[^ "]+//g' build/release/compile_commands.json
}
