# shellcheck shell=bash
# For scripts that try the real programs: a daemon in a temporary folder, on a free port, with a PostgreSQL of its own.
#
# Source this file and call start_daemon BIN [PORT], BIN being the folder with ieumd and ieum. There is $folder, which is
# removed at the end together with the daemon, and $server. stop_daemon ends it as an operator would, and checks how it ended.

folder=$(mktemp -d)
# PostgreSQL, started by root, runs as another user, who must be able to reach its data below this folder.
chmod 711 "$folder"
daemon=
server=

die() {
    printf '\n%s: FAILED: %s\n' "${0##*/}" "$1" >&2
    if [[ -s $folder/ieumd.log ]]; then
        echo "${0##*/}: the end of ieumd's log:" >&2
        tail -n 20 "$folder/ieumd.log" >&2
    fi
    exit 1
}

start_daemon() {
    local bin=$1 port=${2:-0} program line stdout
    for program in "$bin/ieumd" "$bin/ieum"; do
        [[ -x $program ]] || die "there is no $program: run make build first"
    done
    mkfifo "$folder/stdout"
    "$bin/ieumd" serve --listen "127.0.0.1:$port" --metrics off --data-directory "$folder/data" \
        >"$folder/stdout" 2>"$folder/ieumd.log" &
    daemon=$!
    exec {stdout}<"$folder/stdout"
    read -r -t 60 -u "$stdout" line || die 'ieumd ended, or was not ready within a minute'
    [[ $line == 'listening on '* ]] || die "ieumd said '$line'"
    # shellcheck disable=SC2034 # for whoever sources this
    server=${line#listening on }
}

stop_daemon() {
    local code=0
    kill -TERM "$daemon"
    wait "$daemon" || code=$?
    daemon=
    ((code == 0)) || die "ieumd ended with exit code $code"
}

# shellcheck disable=SC2317,SC2329 # reached through the EXIT trap
clean_up() {
    if [[ -n $daemon ]]; then
        kill -TERM "$daemon" 2>/dev/null || true
        wait "$daemon" 2>/dev/null || true
    fi
    rm -rf "$folder"
}
trap clean_up EXIT
