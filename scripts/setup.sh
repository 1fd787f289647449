# The parts that scripts/test and scripts/demo share: finding Rust, installing missing tools, a
# clean environment. Sourced by them, never run by itself. Callers have `set -euo pipefail`.
# shellcheck shell=bash

# The prefix of the messages.
program=scripts/$(basename -- "$0")

fail() {
    printf '%s: %s\n' "$program" "$*" >&2
    exit 1
}

# Runs a command and shows its output only if it fails.
quietly() {
    local log status=0
    log=$(mktemp)
    "$@" >"$log" 2>&1 || status=$?
    if [ "$status" -ne 0 ]; then
        cat -- "$log" >&2
    fi
    rm -f -- "$log"
    return "$status"
}

# Compiling a program also shows that the headers are there, which looking for `cc` does not.
can_compile_c() {
    local directory status=0
    command -v cc >/dev/null || return 1
    directory=$(mktemp -d)
    printf '#include <stdio.h>\nint main(void) { return puts("") < 0; }\n' >"$directory/probe.c"
    cc -o "$directory/probe" "$directory/probe.c" >/dev/null 2>&1 || status=$?
    rm -rf -- "$directory"
    return "$status"
}

# Installs the system packages we need and do not have. Debian and its relatives only; elsewhere
# it names the missing ones.
install_system_packages() {
    local -a missing=() apt=(env DEBIAN_FRONTEND=noninteractive apt-get)
    command -v git >/dev/null || missing+=(git)
    # SQLite is C, compiled in; Rust needs the same compiler to link.
    can_compile_c || missing+=(gcc libc6-dev)
    # Links the test programs in a tenth of the time.
    command -v mold >/dev/null || missing+=(mold)
    # The tests read the contents of terminals.
    command -v script >/dev/null || missing+=(bsdutils)
    # The tests start servers of their own, encrypted ones among them, and a pooler before them.
    compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || missing+=(postgresql)
    PATH="$PATH:/usr/sbin" command -v pgbouncer >/dev/null || missing+=(pgbouncer)
    command -v openssl >/dev/null || missing+=(openssl)
    # Workers have sessions.
    command -v tmux >/dev/null || missing+=(tmux)
    # The tests play the other machine themselves.
    PATH="$PATH:/usr/sbin" command -v sshd >/dev/null || missing+=(openssh-server)
    command -v ssh >/dev/null || missing+=(openssh-client)
    # Workers of the tests are put into sandboxes.
    command -v bwrap >/dev/null || missing+=(bubblewrap)
    # Projects of the tests keep large files.
    command -v git-lfs >/dev/null || missing+=(git-lfs)
    # Programs that check a container, and with which coding agents call the work queue.
    command -v wget >/dev/null || missing+=(wget)
    command -v curl >/dev/null || missing+=(curl)
    # Linters and Schemathesis come from PyPI, into a directory of their own.
    python3 -c 'import venv, ensurepip' 2>/dev/null || missing+=(python3-venv)
    [ "${#missing[@]}" -gt 0 ] || return 0

    command -v apt-get >/dev/null || fail "please install: ${missing[*]} (no apt-get here)"
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null || fail "please install, as root: ${missing[*]}"
        apt=(sudo "${apt[@]}")
    fi
    printf '%s: installing %s\n' "$program" "${missing[*]}" >&2
    # Old package lists name versions that are gone from the mirrors.
    quietly "${apt[@]}" update || fail "apt-get update failed"
    quietly "${apt[@]}" install --yes --no-install-recommends "${missing[@]}" ||
        fail "could not install: ${missing[*]}"
}

# A shell that rustup did not set up, as in continuous integration, lacks cargo on PATH.
find_rust() {
    local binaries=${CARGO_HOME:-${HOME:-}/.cargo}/bin
    case ":$PATH:" in
        *":$binaries:"*) ;;
        *) [ ! -d "$binaries" ] || PATH="$binaries:$PATH" ;;
    esac
    export PATH
    command -v cargo >/dev/null || fail "cargo not found: install Rust with rustup first"
}

# Links with mold. A caller's own flags for the compiler stay as they are.
link_with_mold() {
    local target variable
    [ -z "${RUSTFLAGS-}${CARGO_ENCODED_RUSTFLAGS-}" ] || return 0
    target=$(rustc -vV | sed -n 's/^host: //p')
    variable=CARGO_TARGET_$(tr 'a-z-' 'A-Z_' <<<"$target")_RUSTFLAGS
    [ -n "${!variable-}" ] || export "$variable=-C link-arg=-fuse-ld=mold"
}

# Builds every program and test. Cargo compiles a library once for each set of features, and a selection of packages has a
# set of its own: what is built for one script this way is there for the others.
build_everything() {
    cargo build --workspace --all-targets --locked "$@"
}

# The minimal profile of rustup comes without rustfmt and clippy.
ensure_rust_component() {
    local component=$1 subcommand=$2
    ! cargo "$subcommand" --version >/dev/null 2>&1 || return 0
    command -v rustup >/dev/null || fail "please install the Rust component $component"
    quietly rustup component add "$component" || fail "could not add the Rust component $component"
}

# Has the tools of scripts/python-tools.txt in front of everything on PATH. They are installed below the
# target directory, and again when the file has changed.
ensure_python_tools() {
    local directory=${CARGO_TARGET_DIR:-target}/python-tools
    if ! cmp --silent scripts/python-tools.txt "$directory/installed.txt"; then
        printf '%s: installing linters and Schemathesis from PyPI\n' "$program" >&2
        python3 -m venv --clear "$directory"
        quietly "$directory/bin/pip" install --disable-pip-version-check --requirement scripts/python-tools.txt ||
            fail "could not install scripts/python-tools.txt"
        cp scripts/python-tools.txt "$directory/installed.txt"
    fi
    PATH=$(cd -- "$directory/bin" && pwd):$PATH
    export PATH
}

# A developer's own town, or the git hook this runs in, must not leak into programs that we start.
clean_environment() {
    local variable
    while read -r variable; do
        case "$variable" in
            # Where scripts/agents keeps programs; no program of ours reads it.
            GT_AGENTS_CACHE) ;;
            GT_* | BD_* | BEADS_*) unset "$variable" ;;
        esac
    done < <(compgen -e)
    # shellcheck disable=SC2046  # one word per variable is what unset wants
    unset $(git rev-parse --local-env-vars)
}
