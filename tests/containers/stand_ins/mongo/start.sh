#!/bin/sh
set -e
case "$1" in -*) set -- mongod "$@" ;; esac
if [ "$1" = mongod ] && [ "$(id -u)" = 0 ]; then
  chown -R mongodb /data/db /data/configdb
  exec setpriv --reuid mongodb --regid mongodb --init-groups "$@"
fi
exec "$@"
