# A PostgreSQL server of a test, in a directory that is removed with it.
#
# postgres_server.sh PROGRAMS PORT [SETTING...] reads commands: `start`, `stop`, and `kill`, which
# ends every process of the server at once, as a power cut does. At the end of its input, which comes
# with the end of the test, the server ends, too.
programs=$1 port=$2
shift 2
folder=$(mktemp -d)
owner=
# The server refuses to run as root.
if [ "$(id -u)" = 0 ]; then
    chown postgres "$folder"
    owner='setpriv --reuid postgres --regid postgres --clear-groups'
fi
server=
kill_all() {
    [ -n "$server" ] || return
    memory=$(sed -n '7s/.* //p' "$folder/data/postmaster.pid")
    kill -KILL "$server" $(cat "/proc/$server/task/$server/children")
    wait "$server"
    server=
    # A process that was made meanwhile ends by itself. The next server starts when none of them
    # shares the memory any more.
    until awk -v id="$memory" '$2 == id && $7 > 0 { used = 1 } END { exit used }' \
        /proc/sysvipc/shm; do
        sleep 0.01
    done
}
cd "$folder"
$owner "$programs/initdb" -D "$folder/data" -U signalbox -A trust -E UTF8 --locale=C --no-sync >&2
while read -r command; do
    case $command in
    start)
        $owner "$programs/postgres" -D "$folder/data" -p "$port" -c listen_addresses=127.0.0.1 \
            -c unix_socket_directories= "$@" </dev/null &
        server=$!
        ;;
    stop)
        kill -INT "$server"
        wait "$server"
        server=
        echo stopped
        ;;
    kill)
        kill_all
        echo killed
        ;;
    esac
done
# Nobody reads what is printed from now on.
exec >/dev/null 2>&1
kill_all
cd /
rm -rf "$folder"
