#!/usr/bin/env bash
# Writes what compose-secure.yml mounts: throw-away certificates, a secret key, confs. Usage: make-secure.sh FOLDER
#
# Clients: tls_ca_file=FOLDER/ca.pem, tls_cert_file=FOLDER/client.pem, tls_key_file=FOLDER/client.key,
# access_key=admin, secret_key: the content of FOLDER/secret_key. Servers read keys in PKCS#8 only.
set -euo pipefail
umask 077
folder=$(realpath -m "${1:?give the folder to write}")
[ ! -e "$folder" ] || { echo "$folder exists: give a new folder, or remove it" >&2; exit 1; }
mkdir -p "$folder/servers"
cd "$folder"

openssl req -x509 -newkey rsa:2048 -nodes -days 30 -subj "/CN=rmqtools test authority" -keyout ca.key \
  -out ca.pem 2>/dev/null
pair() { # name, extensions
  openssl req -newkey rsa:2048 -nodes -subj "/CN=$1" -keyout "$1.tmp" -out "$1.csr" 2>/dev/null
  openssl pkcs8 -topk8 -nocrypt -in "$1.tmp" -out "$1.key"
  openssl x509 -req -in "$1.csr" -CA ca.pem -CAkey ca.key -CAcreateserial -days 30 -out "$1.pem" \
    -extfile <(printf '%s\n' "$2") 2>/dev/null
  rm "$1.tmp" "$1.csr"
}
pair server "subjectAltName=DNS:localhost,IP:127.0.0.1"
pair client "extendedKeyUsage=clientAuth"
openssl rand -hex 24 >secret_key
key=$(cat secret_key)

cat >tls.properties <<P
tls.test.mode.enable=false
tls.server.need.client.auth=require
tls.server.authClient=true
tls.server.keyPath=/secure/server.key
tls.server.certPath=/secure/server.pem
tls.server.trustCertPath=/secure/ca.pem
tls.client.authServer=true
tls.client.trustCertPath=/secure/ca.pem
tls.client.keyPath=/secure/client.key
tls.client.certPath=/secure/client.pem
P
printf 'bindAddress=127.0.0.1\nlistenPort=%s\n' "${RMQ_NAMESRV_PORT:-19876}" >namesrv.conf
auth=org.apache.rocketmq.auth
cat >broker.conf <<P
brokerClusterName=SecureCluster
brokerName=broker-s
brokerId=0
namesrvAddr=127.0.0.1:${RMQ_NAMESRV_PORT:-19876}
bindAddress=127.0.0.1
brokerIP1=127.0.0.1
brokerIP2=127.0.0.1
listenPort=${RMQ_BROKER_PORT:-20911}
timerWheelEnable=false
mappedFileSizeCommitLog=67108864
mappedFileSizeConsumeQueue=600000
maxHashSlotNum=50000
maxIndexNum=200000
authenticationEnabled=true
authenticationProvider=$auth.authentication.provider.DefaultAuthenticationProvider
authenticationMetadataProvider=$auth.authentication.provider.LocalAuthenticationMetadataProvider
initAuthenticationUser={"username":"admin","password":"$key"}
innerClientAuthenticationCredentials={"accessKey":"admin","secretKey":"$key"}
authorizationEnabled=true
authorizationProvider=$auth.authorization.provider.DefaultAuthorizationProvider
authorizationMetadataProvider=$auth.authorization.provider.LocalAuthorizationMetadataProvider
P
# the servers run as user 3000 of the image and see only this; other users of the machine do not get through to it
mv server.* tls.properties ./*.conf servers
cp ca.pem client.pem client.key servers
chmod 755 servers
chmod 644 servers/*
echo "written: $folder; start with: RMQ_SECURE_DIR=$folder docker compose -f docker/compose-secure.yml up -d"
