#!/bin/sh
# What the image starts: as root only until the data belong to an ordinary user, who does the rest.
set -eu

# The user "gt" of the image, as a number: a host that mounts the data sees nothing else.
user=10001
data=${GT_DATA:-/data}

# A user that was chosen for the container can write there already.
[ "$(id -u)" -eq 0 ] || exec "$@"

# A directory that the engine made for us belongs to root. What is ours already is left alone, so that
# this costs nothing when the container starts again.
mkdir -p -- "$data"
find "$data" -xdev ! -user "$user" -exec chown -h "$user:$user" {} + ||
    printf '%s: %s cannot be given to the user %s; gt must be able to write there\n' "$0" "$data" "$user" >&2

export HOME="$data"
exec setpriv --reuid="$user" --regid="$user" --clear-groups --inh-caps=-all --no-new-privs -- "$@"
