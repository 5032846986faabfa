# A PostgreSQL server of a test, in a directory that is removed with it.
#
# postgres_server.sh PROGRAMS PORT FOLDER [SETTING...] reads commands: `start`, `stop`, and `kill`,
# which ends every process of the server at once, as a power cut does. `save` makes a base backup of
# the running server, and `restore TIME` has the stopped one begin with that and end its recovery at
# the time. At the end of its input, which comes with the end of the test, the server ends, too. With
# a FOLDER the server speaks TLS with the certificate and the key that are there.
programs=$1 port=$2 tls=$3
shift 3
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
# Programs of this tree may be where only root can read.
case $programs in
/usr/*) ;;
*)
    cp -a "${programs%/bin}" "$folder/programs"
    programs=$folder/programs/bin
    ;;
esac
cd "$folder"
$owner "$programs/initdb" -D "$folder/data" -U signalbox -A trust -E UTF8 --locale=C --no-sync >&2
if [ -n "$tls" ]; then
    cp "$tls/server.crt" "$tls/server.key" "$folder/data"
    [ -z "$owner" ] || chown postgres "$folder/data/server.crt" "$folder/data/server.key"
    chmod 600 "$folder/data/server.key"
    set -- -c ssl=on "$@"
fi
while read -r command argument; do
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
    save)
        $owner mkdir "$folder/archive"
        $owner "$programs/pg_basebackup" -h 127.0.0.1 -p "$port" -U signalbox -D "$folder/base" \
            -c fast -X none >&2
        echo saved
        ;;
    restore)
        rm -rf "$folder/data"
        mv "$folder/base" "$folder/data"
        cat >>"$folder/data/postgresql.auto.conf" <<END
restore_command = 'cp "$folder/archive/%f" "%p"'
recovery_target_time = '$argument'
recovery_target_action = 'promote'
END
        $owner touch "$folder/data/recovery.signal"
        echo restored
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
# Tens of thousands of files may take longer than a test waits for the end of its server.
rm -rf "$folder" </dev/null &
