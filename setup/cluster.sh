#!/bin/sh
# Runs a Slurm cluster of several nodes on this machine, for `make test-cluster`; as root, on Debian or Ubuntu.
#   setup/cluster.sh start [FEATURES...]   a node n1, n2, ... for each word: its features, joined by commas; default: first second
#   setup/cluster.sh lose NODE             kills the node's slurmd and the steps of its jobs, as a loss of power would
#   setup/cluster.sh node NODE             starts the node's slurmd, again
#   setup/cluster.sh stop                  ends all of it, and puts back what lay in /etc/slurm
# Installs slurm-wlm, slurmdbd, munge and mariadb-server-core where they are missing. Keys, state, logs and the database
# for `sacct` lie in /var/lib/knobscope-cluster (or KNOBSCOPE_CLUSTER). All of it listens on 127.0.0.1 only.
set -eu
PATH=$PATH:/usr/sbin:/sbin
cluster=${KNOBSCOPE_CLUSTER:-/var/lib/knobscope-cluster}
conf=/etc/slurm/slurm.conf
port=17000 # that of slurmctld; slurmdbd has the next one, the nodes those after it
patience=60
export SLURM_CONF="$cluster/slurm.conf" # slurmdbd.conf is looked for beside it
export MYSQL_UNIX_PORT="$cluster/mariadb.socket"

say() { echo "setup/cluster.sh: $1" >&2; }

install_packages() {
    missing=""
    for pair in slurm-wlm:slurmctld slurmdbd:slurmdbd munge:munged mariadb-server-core:mariadbd; do
        command -v "${pair#*:}" >/dev/null || missing="$missing ${pair%:*}"
    done
    policy=/usr/sbin/policy-rc.d
    [ -n "$missing" ] || { ! grep -qs 'of knobscope' $policy || rm -f $policy; return 0; } # of a call that was killed
    say "installing:$missing"
    # Packages must not start daemons of their own: those would read another configuration.
    if [ ! -e $policy ] || grep -q 'of knobscope' $policy; then # of a call that was killed
        trap 'rm -f $policy' EXIT
        trap 'exit 130' INT
        trap 'exit 143' TERM HUP
        printf '#!/bin/sh\n# of knobscope, until its packages are installed\nexit 101\n' >$policy
        chmod +x $policy
    fi
    apt-get update -qq
    # shellcheck disable=SC2086  # a list of packages
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
}

await() { # await WHAT COMMAND...: until the command succeeds
    what=$1
    shift
    begin=$(date +%s)
    until timeout 10 "$@" >/dev/null 2>&1; do
        [ $(($(date +%s) - begin)) -lt $patience ] || { say "$what is not there after $patience s; see $cluster/log"; return 1; }
        sleep 0.2
    done
}

number_of() { # number_of NAME: of a daemon that runs; numbers are used again, so that its name has to be right, too
    file=$cluster/run/$1.pid
    [ -f "$file" ] || return 1
    found=$(cat "$file" 2>/dev/null) || return 1
    [ "$(cat "/proc/$found/comm" 2>/dev/null)" = "${1%-*}" ] && echo "$found"
}

end() { # end NAME: a daemon, by the number it has noted
    pid=$(number_of "$1") || return 0
    kill "$pid" 2>/dev/null || true
    tries=0
    while number_of "$1" >/dev/null; do
        tries=$((tries + 1))
        [ $tries -lt 100 ] || kill -9 "$pid" 2>/dev/null || true
        [ $tries -lt 150 ] || { say "$1 ($pid) does not end"; return 1; }
        sleep 0.1
    done
    rm -f "$cluster/run/$1.pid"
}

write_configuration() { # write_configuration FEATURES...
    host=$(hostname -s)
    memory=$(awk '/^MemTotal:/ {print int($2 / 1024)}' /proc/meminfo)
    cat >"$cluster/slurm.conf" <<CONF
ClusterName=knobscope
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
SlurmUser=root
# Loopback only: without these two, daemons listen on every address of the machine.
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
AuthType=auth/munge
AuthInfo=socket=$cluster/munge/munge.socket
CryptoType=crypto/munge
# A machine like this one has neither systemd nor, often, cgroups that one may use.
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/linux
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=localhost
AccountingStoragePort=$((port + 1))
AccountingStoragePass=$cluster/munge/munge.socket
AccountingStorageEnforce=limits
AccountingStoreFlags=job_comment
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SchedulerParameters=sched_interval=5
# A node that does not answer for so long is lost; one that comes back takes jobs again, whatever it was lost by.
SlurmdTimeout=15
ReturnToService=2
JobRequeue=1
MinJobAge=300
KillWait=5
StateSaveLocation=$cluster/state
SlurmdSpoolDir=$cluster/spool/%n
SlurmctldPidFile=$cluster/run/slurmctld.pid
SlurmdPidFile=$cluster/run/slurmd-%n.pid
SlurmctldLogFile=$cluster/log/slurmctld.log
SlurmdLogFile=$cluster/log/slurmd-%n.log
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
    number=0
    for features in "$@"; do
        number=$((number + 1))
        echo "NodeName=n$number NodeHostname=$host NodeAddr=127.0.0.1 Port=$((port + 1 + number)) CPUs=2" \
            "RealMemory=$((memory / $#)) Feature=$features State=UNKNOWN" >>"$cluster/slurm.conf"
        mkdir -p "$cluster/spool/n$number"
    done
    cat >"$cluster/slurmdbd.conf" <<CONF
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort=$((port + 1))
CommunicationParameters=NoInAddrAny
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$cluster/munge/munge.socket
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=root
StorageLoc=slurm_acct_db
LogFile=$cluster/log/slurmdbd.log
PidFile=$cluster/run/slurmdbd.pid
CONF
    chmod 600 "$cluster/slurmdbd.conf"
}

start_munge() {
    install -d -o munge -g munge -m 755 "$cluster/munge"
    (umask 077; head -c 128 /dev/urandom >"$cluster/munge/munge.key")
    chown munge:munge "$cluster/munge/munge.key"
    runuser -u munge -- munged --key-file="$cluster/munge/munge.key" --socket="$cluster/munge/munge.socket" \
        --pid-file="$cluster/munge/munged.pid" --log-file="$cluster/munge/munged.log" --seed-file="$cluster/munge/munged.seed"
    ln -sf ../munge/munged.pid "$cluster/run/munged.pid"
    await munged sh -c "munge -n -S '$cluster/munge/munge.socket' | unmunge -S '$cluster/munge/munge.socket'"
}

# A database of its own, which nobody but root reaches: it has a socket and no port.
start_database() {
    mariadb-install-db --no-defaults --datadir="$cluster/mariadb" --user=root --skip-test-db \
        --auth-root-authentication-method=socket >"$cluster/log/mariadb-install.log" 2>&1
    setsid mariadbd --no-defaults --datadir="$cluster/mariadb" --user=root --skip-networking --socket="$MYSQL_UNIX_PORT" \
        --pid-file="$cluster/run/mariadbd.pid" --innodb-buffer-pool-size=64M --innodb-lock-wait-timeout=900 \
        >"$cluster/log/mariadbd.log" 2>&1 </dev/null &
    await mariadbd test -S "$MYSQL_UNIX_PORT"
    slurmdbd
    await slurmdbd sacctmgr -n show cluster
    sacctmgr -i -Q add cluster knobscope >/dev/null
}

start_node() { # start_node NODE
    slurmd -N "$1" -f "$SLURM_CONF"
}

# Snakemake's plugin takes all variables SLURM_* away from jobs: what they start has to find the file in its usual place.
link_configuration() {
    mkdir -p "$(dirname $conf)"
    if [ "$(readlink $conf)" != "$cluster/slurm.conf" ] && { [ -e $conf ] || [ -L $conf ]; }; then
        mv $conf $conf.before-knobscope
    fi
    ln -sfn "$cluster/slurm.conf" $conf
}

start() { # start FEATURES...
    install_packages
    stop
    rm -rf "$cluster"
    mkdir -p "$cluster/log" "$cluster/run" "$cluster/state" "$cluster/spool"
    chmod 755 "$cluster"
    write_configuration "$@"
    link_configuration
    start_munge
    start_database
    slurmctld -f "$SLURM_CONF"
    for number in $(seq $#); do start_node "n$number"; done
    nodes=$#
    await "a node" sh -c "[ \$(sinfo -h -N -o %T | grep -cx idle) = $nodes ]"
}

lose() { # lose NODE
    pid=$(number_of "slurmd-$1") || { say "$1 does not run"; return 1; }
    kill -9 "$pid"
    kill_steps "$1"
}

# What Slurm started on a node, and Slurm's own processes there. Not what those have started in turn: that has to end by
# itself, and `make test-cluster` looks whether it does.
kill_steps() { # kill_steps NODE
    for process in /proc/[0-9]*; do
        ! is_step_of "$process" "$1" || kill -9 "${process#/proc/}" 2>/dev/null || true
    done
}

is_step_of() { # is_step_of PROCESS NODE
    case $(tr '\0' ' ' 2>/dev/null <"$1/cmdline") in
        slurmstepd:*) ls -l "$1/fd" 2>/dev/null | grep -qF "$cluster/log/slurmd-$2.log" ;;
        *keeper.py*) return 1 ;;
        *slurm_script* | *srun\ * | *snakemake* | *knobscope\ *) tr '\0' '\n' 2>/dev/null <"$1/environ" | grep -qx "SLURMD_NODENAME=$2" ;;
        *) return 1 ;;
    esac
}

stop() {
    [ -d "$cluster" ] || return 0
    if number_of slurmctld >/dev/null; then
        scancel --partition=main 2>/dev/null || true
        tries=0
        while [ -n "$(squeue -h 2>/dev/null)" ] && [ $tries -lt 50 ]; do
            tries=$((tries + 1))
            sleep 0.2
        done
    fi
    for file in "$cluster"/run/slurmd-*.pid; do
        [ -f "$file" ] || continue
        node=$(basename "$file" .pid)
        end "$node"
        kill_steps "${node#slurmd-}"
    done
    for name in slurmctld slurmdbd mariadbd munged; do end $name; done
    if [ "$(readlink $conf 2>/dev/null)" = "$cluster/slurm.conf" ]; then
        rm $conf
        if [ -e $conf.before-knobscope ] || [ -L $conf.before-knobscope ]; then mv $conf.before-knobscope $conf; fi
    fi
}

[ "$(id -u)" = 0 ] || { say "call it as root"; exit 2; }
command=${1-}
[ $# -eq 0 ] || shift
case $command in
    start)
        [ $# -gt 0 ] || set -- first second
        start "$@"
        ;;
    lose) lose "$1" ;;
    node) start_node "$1" ;;
    stop) stop ;;
    *) sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;;
esac
