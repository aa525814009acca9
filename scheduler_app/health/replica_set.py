"""Whether MongoDB is a replica set, without which writes are neither retried nor safe from a failover."""

from collections.abc import Mapping

#: What to do about a mongod that is not part of a replica set.
REMEDY = "start it with --replSet rs0 and run rs.initiate() once; a set of one is enough"


def is_replica_set(hello: Mapping[str, object]) -> bool:
    """Whether the answer to `hello` comes from a member of an initiated set, or from a mongos."""
    return "setName" in hello or is_mongos(hello)


def is_mongos(hello: Mapping[str, object]) -> bool:
    return hello.get("msg") == "isdbgrid"
