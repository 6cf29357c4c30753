#!/usr/bin/env bash
# build-image.sh [--name]    prints the local image's name, after building it where it is not there yet
#
# For machines that reach no image hub. The image is made of the jars of the local cluster (rmqtools.cluster.jars), a
# Java runtime cut out of this machine's JDK, its C library and Debian's static busybox; nothing is pulled.
# Its tag holds a hash of the recipe and of the jars' lock file: who finds it by name need not build it.
# --name: only say the name. Progress goes to stderr, parts to .build/image of the checkout.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
checkout=$(dirname "$here")
version=5.5.0
work=$checkout/.build/image
rootfs=$work/rootfs

modules=java.se,jdk.attach,jdk.charsets,jdk.crypto.cryptoki,jdk.crypto.ec,jdk.jcmd,jdk.management,jdk.naming.dns
modules+=,jdk.net,jdk.unsupported,jdk.zipfs
# needed by the runtime and by the natives of rocksdb and boringssl (which want glibc: musl is no way)
libraries=(libc.so.6 libm.so.6 libpthread.so.0 librt.so.1 libdl.so.2 libz.so.1 libgcc_s.so.1 libstdc++.so.6
  libnss_files.so.2 libnss_dns.so.2 libresolv.so.2 libcrypt.so.1)

say() { echo "$*" >&2; }
fail() { say "$*"; exit 1; }

hash_of_recipe() {
  cat "$here/build-image.sh" "$here/image/Dockerfile" "$checkout/rmqtools/cluster/locks/5.5.0.lock" | sha256sum | cut -c 1-12
}

find_jdk() {
  "$checkout/.ci/install-java" >&2 || exit 1
  if [ -n "${JAVA_HOME:-}" ]; then echo "$JAVA_HOME"; return; fi
  dirname "$(dirname "$(readlink -f "$(command -v javac)")")"
}

add_java() {
  local jdk compress=2
  jdk=$(find_jdk)
  # the names of jlink's levels changed in 21
  case $("$jdk/bin/jlink" --version) in 17* | 18* | 19* | 20*) ;; *) compress=zip-6 ;; esac
  say "cutting a Java runtime out of $jdk"
  "$jdk/bin/jlink" --output "$rootfs/opt/java" --add-modules "$modules" --strip-java-debug-attributes \
    --no-header-files --no-man-pages --compress=$compress --generate-cds-archive >&2
}

add_libraries() {
  local name path cache
  cache=$(/sbin/ldconfig -p)
  for name in "${libraries[@]}"; do
    path=$(awk -v name="$name" '$1 == name {print $NF; exit}' <<<"$cache")
    [ -n "$path" ] || continue # the newest C library has some of them built in
    cp -L --parents "$path" "$rootfs"
  done
  path=$(ldd "$rootfs/opt/java/bin/java" | awk '$1 ~ /\/ld-/ {print $1}')
  cp -L --parents "$path" "$rootfs"
}

add_busybox() (
  local applet applets
  cd "$work"
  if command -v busybox >/dev/null && ! ldd "$(command -v busybox)" >/dev/null 2>&1; then
    cp "$(command -v busybox)" "$rootfs/bin/busybox"
  else
    rm -rf busybox-static_*.deb busybox
    apt-get download -q busybox-static >&2 || { apt-get update -q >&2 && apt-get download -q busybox-static >&2; } ||
      fail "no busybox-static: apt-get could not download it"
    dpkg-deb -x busybox-static_*.deb busybox
    cp busybox/bin/busybox "$rootfs/bin/" 2>/dev/null || cp busybox/usr/bin/busybox "$rootfs/bin/"
    rm -rf busybox-static_*.deb busybox
  fi
  applets=$("$rootfs/bin/busybox" --list)
  for applet in $applets; do
    [ "$applet" = busybox ] || ln -sf busybox "$rootfs/bin/$applet"
  done
)

add_accounts() {
  printf 'root:x:0:0:root:/root:/bin/sh\nrocketmq:x:3000:3000::/home/rocketmq:/bin/sh\n' >"$rootfs/etc/passwd"
  printf 'root:x:0:\nrocketmq:x:3000:\n' >"$rootfs/etc/group"
  echo 'hosts: files dns' >"$rootfs/etc/nsswitch.conf"
}

add_jars() {
  local server=$work/home/rocketmq/rocketmq-$version
  mkdir -p "$server/lib" "$server/conf" "$work/home/rocketmq/store" "$work/home/rocketmq/logs"
  say "copying the jars"
  (cd "$checkout" && "${PYTHON:-python3}" -c '
from rmqtools.cluster.jars import ensure_jars
print(*ensure_jars(), sep="\0", end="\0")') | xargs -0 cp -t "$server/lib"
}

build() {
  umask 022
  rm -rf "$work"
  mkdir -p "$rootfs"/{bin,etc,tmp,var/tmp,proc,sys,dev,root,opt}
  chmod 1777 "$rootfs/tmp" "$rootfs/var/tmp"
  add_java
  add_libraries
  add_busybox
  add_accounts
  add_jars
  say "building $image"
  docker build -q -t "$image" --build-arg VERSION=$version -f "$here/image/Dockerfile" "$work" >&2
  rm -rf "$work" # 190 MB, and all of it is in the image
}

image=rmqtools-rocketmq:$version-$(hash_of_recipe)
if [ "${1:-}" != --name ] && ! docker image inspect "$image" >/dev/null 2>&1; then
  build
fi
echo "$image"
