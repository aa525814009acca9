#!/bin/sh
set -e
case "$1" in -* | *.conf) set -- redis-server "$@" ;; esac
if [ "$1" = redis-server ] && [ "$(id -u)" = 0 ]; then
  chown -R redis .
  exec setpriv --reuid redis --regid redis --init-groups "$@"
fi
exec "$@"
