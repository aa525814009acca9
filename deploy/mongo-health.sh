#!/bin/bash
# Whether the mongod of docker-compose.yml is a primary that accepts writes. The first check after each start makes the replica
# set and the user, whose password and roles are then those of .env and of this release. That takes mongosh, which costs a
# second of CPU; every later check sends the command `hello` itself.
set -euo pipefail

if [ ! -e /tmp/prepared ]; then
  mongosh --quiet --eval '
    db.getSiblingDB("local").auth("__system", process.env.MONGO_KEY)
    try { rs.status() } catch (error) {
      if (error.code !== 94) throw error
      rs.initiate({_id: "rs0", members: [{_id: 0, host: "mongo:27017"}]})
    }
    if (!db.hello().isWritablePrimary) quit(1)
    const admin = db.getSiblingDB("admin")
    const user = {pwd: process.env.MONGO_PASSWORD, roles: [{role: "readWrite", db: "schedulerdb"}, "clusterMonitor"]}
    if (admin.getUser("scheduler")) admin.updateUser("scheduler", user)
    else admin.createUser({user: "scheduler", ...user})
  '
  touch /tmp/prepared
fi

# OP_MSG: its length, a request id, no answer to any, the code 2013, no flags, one document {hello: 1, $db: "admin"}.
exec 3<> "/dev/tcp/127.0.0.1/${MONGO_PORT:-27017}"
printf '\64\0\0\0\1\0\0\0\0\0\0\0\335\7\0\0\0\0\0\0\0\37\0\0\0\20hello\0\1\0\0\0\2$db\0\6\0\0\0admin\0\0' >&3
timeout 10 head -c 256 <&3 | grep -aqP 'isWritablePrimary\x00\x01'
