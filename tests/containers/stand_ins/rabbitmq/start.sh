#!/bin/sh
set -e
if [ "$1" = rabbitmq-server ] && [ "$(id -u)" = 0 ]; then
  chown -R rabbitmq /var/lib/rabbitmq
  exec setpriv --reuid rabbitmq --regid rabbitmq --init-groups "$@"
fi
exec "$@"
