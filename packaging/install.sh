#!/bin/sh
# Installs gt and bd from an archive of a release, after checking it against the release's checksums.
#
#   sh install.sh [--prefix DIR]
#
# GT_INSTALL_FROM     where the archives are: a URL, or file:// and a directory; a released script knows it
# GT_INSTALL_VERSION  which version; a released script installs its own
# GT_INSTALL_TARGET   for which system, if not for this one
set -eu

# The workflow that makes a release fills these in.
from=${GT_INSTALL_FROM-@from@}
version=${GT_INSTALL_VERSION-@version@}
prefix=${HOME:-/usr}/.local

fail() {
    printf 'install.sh: %s\n' "$*" >&2
    exit 1
}

while [ "$#" -gt 0 ]; do
    case "$1" in
        --prefix)
            prefix=${2-}
            [ -n "$prefix" ] || fail "--prefix needs a directory"
            shift
            ;;
        *) fail "unknown argument: $1; usage: sh install.sh [--prefix DIR]" ;;
    esac
    shift
done
case "$from" in
    @*) fail "this copy does not belong to a release; set GT_INSTALL_FROM and GT_INSTALL_VERSION" ;;
esac

target=${GT_INSTALL_TARGET-}
if [ -z "$target" ]; then
    case "$(uname -s) $(uname -m)" in
        "Linux x86_64") target=x86_64-unknown-linux-musl ;;
        "Linux aarch64" | "Linux arm64") target=aarch64-unknown-linux-musl ;;
        Darwin*) fail "gt runs on Linux alone; on macOS use a Linux machine, virtual or in a container" ;;
        *) fail "there is no archive for $(uname -s) on $(uname -m); build it with cargo install --locked --path crates/cli" ;;
    esac
fi

fetch() {
    case "$from" in
        file://*) cp -- "${from#file://}/$1" "$2" ;;
        *)
            if command -v curl >/dev/null; then
                curl --proto '=https' --fail --silent --show-error --location --output "$2" "$from/$1"
            else
                wget -q -O "$2" "$from/$1"
            fi
            ;;
    esac || fail "cannot fetch $from/$1"
}

work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
name=gt-$version-$target
fetch "$name.tar.gz" "$work/$name.tar.gz"
fetch SHA256SUMS "$work/SHA256SUMS"
grep "  $name.tar.gz\$" "$work/SHA256SUMS" >"$work/sum" || fail "SHA256SUMS does not name $name.tar.gz"
if command -v sha256sum >/dev/null; then
    (cd -- "$work" && sha256sum -c sum >/dev/null) || fail "$name.tar.gz is damaged: its checksum is another"
else
    (cd -- "$work" && shasum -a 256 -c sum >/dev/null) || fail "$name.tar.gz is damaged: its checksum is another"
fi
tar -xzf "$work/$name.tar.gz" -C "$work"
mkdir -p -- "$prefix/bin"
# A program that runs, such as the daemon, cannot be written to. Its name can be given to another file.
cp -- "$work/$name/bin/gt" "$prefix/bin/gt.new"
mv -f -- "$prefix/bin/gt.new" "$prefix/bin/gt"
rm -- "$work/$name/bin/gt"
cp -RP -- "$work/$name/." "$prefix/"
printf 'Installed gt %s and bd in %s\n' "$version" "$prefix/bin"
case ":$PATH:" in
    *":$prefix/bin:"*) printf 'Next: gt demo, or gt init in a repository of yours\n' ;;
    *) printf 'Next: put %s on your PATH, then gt demo\n' "$prefix/bin" ;;
esac
