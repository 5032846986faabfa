# A machine with etcd, Patroni and the PostgreSQL server that Patroni runs, until the end of the input.
#
# database_machine.sh CONFIGURATION DATA reads commands: `start`, and `kill`, which ends Patroni and
# every process of the server at once. etcd is configured by the environment, and runs throughout.
configuration=$1 data=$2
owner=
# The server refuses to run as root.
[ "$(id -u)" = 0 ] && owner='setpriv --reuid postgres --regid postgres --clear-groups'
$owner etcd </dev/null >etcd.log 2>&1 &
etcd=$!
patroni=
kill_server() {
    [ -n "$patroni" ] || return
    kill -KILL "$patroni"
    wait "$patroni"
    patroni=
    server=$(head -n 1 "$data/postmaster.pid") || return
    kill -KILL "$server" $(cat "/proc/$server/task/$server/children")
}
while read -r command; do
    case $command in
    start)
        $owner patroni "$configuration" </dev/null >>patroni.log 2>&1 &
        patroni=$!
        ;;
    kill)
        kill_server
        echo killed
        ;;
    esac
done
# Nobody reads what is printed from now on.
exec >/dev/null 2>&1
kill_server
kill -KILL "$etcd"
wait
