#!/usr/bin/env bash
# dockerd.sh ensure [PID] | stop [PID] | status
#
# ensure: does nothing where a daemon answers; else installs what is missing with apt (Debian, root) and starts a
#         daemon of our own without bridge and firewall rules (our containers use the host's network).
# stop:   stops the daemon that "ensure" started, once nobody uses it: no container runs and no other PID that
#         was given to "ensure" lives. A daemon of the machine's own is never touched.
# PID:    the process that uses the daemon; default: the caller of this script.
set -euo pipefail

state=${RMQ_DOCKER_STATE:-/run/rmqtools-dockerd} # pid file, log, exec root, one file per user
data=${RMQ_DOCKER_DATA:-/var/lib/docker}
socket=/var/run/docker.sock
wait_s=60
pidfile=$state/dockerd.pid log=$state/dockerd.log
user=${2:-$PPID}

fail() { echo "$*" >&2; exit 1; }
is_root() { [ "$(id -u)" = 0 ]; }
answers() { timeout 20 docker version --format '{{.Server.Version}}' >/dev/null 2>&1; }
has_compose() { docker compose version >/dev/null 2>&1 || command -v docker-compose >/dev/null; }
installed() { command -v docker >/dev/null && command -v dockerd >/dev/null && has_compose; }

our_pid() { # the pid in our pid file, if that process is (still) our dockerd
  local pid
  pid=$(cat "$pidfile" 2>/dev/null) || return 1
  [ -n "$pid" ] && [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = dockerd ] &&
    tr '\0' ' ' <"/proc/$pid/cmdline" | grep -qF -- "$pidfile" && echo "$pid"
}

apt_install() {
  apt-get install -y -q --no-install-recommends "$@" && return
  apt-get update -q && apt-get install -y -q --no-install-recommends "$@"
}

install_missing() {
  local packages=()
  installed && return
  answers && has_compose && return # a client and somebody else's daemon are enough
  is_root || fail "no Docker: docker, dockerd or docker-compose is missing, and installing them takes root"
  command -v apt-get >/dev/null || fail "no Docker: docker, dockerd or docker-compose is missing, and there is no apt-get"
  apt-cache show docker.io >/dev/null 2>&1 || apt-get update -q >"$state/apt.log" 2>&1 || true # no package lists yet
  command -v docker >/dev/null && command -v dockerd >/dev/null || packages+=(docker.io)
  # newer releases have the client in a package of its own
  if ! command -v docker >/dev/null && apt-cache show docker-cli >/dev/null 2>&1; then packages+=(docker-cli); fi
  has_compose || packages+=(docker-compose)
  echo "installing ${packages[*]}"
  DEBIAN_FRONTEND=noninteractive apt_install "${packages[@]}" >"$state/apt.log" 2>&1 ||
    { tail -n 5 "$state/apt.log" >&2; fail "no Docker: apt-get could not install ${packages[*]}"; }
}

mount_cgroups() { # a bare machine may have no cgroup mounted at all
  mountpoint -q /sys/fs/cgroup && return
  mount -t cgroup2 none /sys/fs/cgroup 2>/dev/null && return
  mount -t tmpfs -o mode=755 cgroup /sys/fs/cgroup
  awk '!/^#/ && $4 == 1 {print $1}' /proc/cgroups | while read -r controller; do
    mkdir -p "/sys/fs/cgroup/$controller"
    mount -n -t cgroup -o "$controller" cgroup "/sys/fs/cgroup/$controller" || rmdir "/sys/fs/cgroup/$controller"
  done
}

start() {
  local child started=$SECONDS
  is_root || fail "no Docker: no daemon answers, and starting one takes root"
  [ -z "${DOCKER_HOST:-}" ] || fail "no Docker: nothing answers at DOCKER_HOST=$DOCKER_HOST"
  mount_cgroups
  mkdir -p "$data"
  rm -f "$pidfile" # a stale one makes dockerd refuse to start
  # setsid: not killed with the shell that called us; the log and /dev/null: no pipe of the caller's held open
  setsid dockerd --pidfile "$pidfile" --host "unix://$socket" --data-root "$data" --exec-root "$state/exec" \
    --bridge=none --iptables=false --ip6tables=false --log-level=warn </dev/null >"$log" 2>&1 &
  child=$!
  until answers; do
    kill -0 "$child" 2>/dev/null || fail "no Docker: dockerd died: $(tail -n 1 "$log")"
    [ $((SECONDS - started)) -lt $wait_s ] || { kill "$child"; fail "no Docker: dockerd is silent after $wait_s s, see $log"; }
    sleep 0.2
  done
  echo "dockerd started in $((SECONDS - started)) s"
}

ensure() {
  if is_root; then
    mkdir -p "$state/users"
    exec 9>"$state/lock"
    flock -w 300 9 # two test runs at once install once and start one daemon
  fi
  install_missing
  if answers; then echo "a Docker daemon answers"; else start 9>&-; fi
  if is_root && our_pid >/dev/null; then touch "$state/users/$user"; fi
}

in_use() { # says by whom
  local file containers
  for file in "$state"/users/*; do
    [ -e "$file" ] || continue
    if kill -0 "${file##*/}" 2>/dev/null; then echo "process ${file##*/}"; return; else rm -f "$file"; fi
  done
  containers=$(docker ps --format '{{.Names}}' | tr '\n' ' ')
  [ -n "$containers" ] && echo "$containers"
}

stop() {
  local pid by waited=0
  is_root && [ -d "$state" ] || { echo "no daemon of ours runs"; return; }
  exec 9>"$state/lock"
  flock -w 300 9
  rm -f "$state/users/$user"
  pid=$(our_pid) || { echo "no daemon of ours runs"; return; }
  if by=$(in_use); then echo "left up, in use by $by"; return; fi
  kill -TERM "$pid" # takes its containerd with it
  while kill -0 "$pid" 2>/dev/null; do
    [ $((waited += 1)) -le 150 ] || { echo "killed after 30 s" >&2; kill -KILL "$pid"; break; }
    sleep 0.2
  done
  umount "$state"/exec/netns/* 2>/dev/null || true # dockerd leaves these
  rm -rf "$pidfile" "$state/exec"
  echo "stopped"
}

case ${1:-} in
  ensure) ensure ;;
  stop) stop ;;
  status) if answers; then echo "answers$(our_pid >/dev/null && echo ', ours')"; else echo "does not answer"; exit 3; fi ;;
  *) sed -n '2,9s/^# \{0,1\}//p' "$0"; exit 64 ;;
esac
