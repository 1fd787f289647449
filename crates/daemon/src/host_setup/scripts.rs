//! The scripts that the other machine carries out. Their first argument is the directory of the town there.

/// Tells what the machine has. A directory without a `/` at its beginning is below the home directory.
pub(super) const PROBE: &str = r#"
d=$1
case $d in /*) ;; *) d=$HOME/$d ;; esac
say() { printf 'gt-probe %s %s\n' "$1" "$2"; }
say system "$(uname -s)"
say architecture "$(uname -m)"
say clock "$(date +%s)"
say path "$d"
command -v git > /dev/null 2>&1 && say git yes
command -v tmux > /dev/null 2>&1 && say tmux yes
if [ -e "$d/.gt/joining" ]; then say directory unfinished
elif [ -e "$d" ]; then say directory taken
else say directory free
fi
"#;

/// Makes the directory with the program on standard input, which has `$2` bytes. The file `joining` stays until the host has
/// joined.
pub(super) const COPY: &str = r#"
set -e
umask 077
mkdir -p "$1/.gt/program"
: > "$1/.gt/joining"
cat > "$1/.gt/program/gt.new"
[ "$(wc -c < "$1/.gt/program/gt.new")" -eq "$2" ] || { echo 'the program did not arrive whole' >&2; exit 1; }
chmod 755 "$1/.gt/program/gt.new"
"$1/.gt/program/gt.new" --version > /dev/null
mv -f "$1/.gt/program/gt.new" "$1/.gt/program/gt"
"#;

/// Has the program there join the town; the order is on standard input.
pub(super) const JOIN: &str = r#"exec "$1/.gt/program/gt" host join "$1""#;

/// Notes that the host has joined.
pub(super) const JOINED: &str = r#"rm -f "$1/.gt/joining""#;

/// Takes back everything that an attempt to join has made. Does nothing to a host that has joined.
pub(super) const UNDO: &str = r#"
[ -e "$1/.gt/joining" ] || exit 0
[ ! -e "$1/.gt/town.toml" ] || "$1/.gt/program/gt" -C "$1" host leave > /dev/null
password=$(cat "$1/.gt/joining")
[ -z "$password" ] || rm -f -- "$password"
rm -rf -- "$1"
"#;

/// Puts the program on standard input, which has `$2` bytes, in place of the one there. A process that runs keeps the former one.
pub(super) const SWAP: &str = r#"
set -e
b=$1/.gt/program
[ -x "$b/gt" ] || { echo "there is no $b/gt: gt host add did not make this host; put the new gt there by hand, and gt down && gt up" >&2; exit 1; }
cat > "$b/gt.new"
[ "$(wc -c < "$b/gt.new")" -eq "$2" ] || { echo 'the program did not arrive whole' >&2; exit 1; }
chmod 755 "$b/gt.new"
"$b/gt.new" --version > /dev/null
ln -f "$b/gt" "$b/gt.old"
mv -f "$b/gt.new" "$b/gt"
"#;

/// Restarts the daemon there.
pub(super) const RESTART: &str = r#"exec "$1/.gt/program/gt" -C "$1" host restart"#;

/// Puts the former program back.
pub(super) const SWAP_BACK: &str = r#"
set -e
mv -f "$1/.gt/program/gt.old" "$1/.gt/program/gt"
exec "$1/.gt/program/gt" -C "$1" host restart
"#;

/// Removes the former program.
pub(super) const SWAPPED: &str = r#"rm -f "$1/.gt/program/gt.old""#;
