"""Members of the replica set killed, frozen, and without room."""

import time

from tests.acceptance.chaos.cluster import Cluster
from tests.acceptance.chaos.faults.registry import fault
from tests.acceptance.chaos.load import Load

OUTAGE = 30.0


@fault("primary-killed")
def primary_killed(cluster: Cluster, load: Load) -> None:
    """kill -9 of MongoDB's primary: another one is elected"""
    primary = cluster.primary()
    primary.kill()
    time.sleep(6)
    primary.start()


@fault("primary-steps-down")
def primary_steps_down(cluster: Cluster, load: Load) -> None:
    """MongoDB's primary steps down, as before maintenance: another one is elected"""
    cluster.primary().step_down()
    cluster.mongo.wait_for_primary()


@fault("secondary-killed")
def secondary_killed(cluster: Cluster, load: Load) -> None:
    """kill -9 of a secondary"""
    secondary = cluster.mongo.secondaries()[0]
    secondary.kill()
    time.sleep(5)
    secondary.start()


@fault("mongodb-stopped")
def mongodb_stopped(cluster: Cluster, load: Load) -> None:
    """all of MongoDB away for 30 s"""
    cluster.cut_off_all_workers()
    for member in cluster.mongo.members:
        member.kill()
    time.sleep(OUTAGE)
    for member in cluster.mongo.members:
        member.start()


@fault("mongodb-frozen")
def mongodb_frozen(cluster: Cluster, load: Load) -> None:
    """the primary hangs (SIGSTOP) for 15 s and comes back to find another one"""
    primary = cluster.primary()
    primary.pause()
    time.sleep(15)
    primary.unpause()


@fault("disk-full")
def disk_full(cluster: Cluster, load: Load) -> None:
    """the disks of the primary and of a secondary are full: no majority until there is room"""
    primary = cluster.primary()
    members = [primary, cluster.mongo.secondaries()[0]]
    disks = [cluster.disks[cluster.mongo.members.index(member)] for member in members]
    for disk in disks:
        disk.fill()
    time.sleep(12)
    for disk in disks:
        disk.free()
    # mongod ends when it cannot write its journal; with room again it is started again.
    for member in members:
        if member.died():
            member.start()
