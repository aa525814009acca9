"""Real servers for one machine, started from installed binaries and ended with their owner.

with Mongod(Path("data/mongo")) as mongod, Redis(Path("data/redis")) as redis:
    print(mongod.uri, redis.port)
"""

from scheduler_app.embedded.binaries import NoBinary, find_mongod, find_rabbitmq_server, find_redis_server
from scheduler_app.embedded.brokers import RabbitMQ, Redis
from scheduler_app.embedded.mongod import Mongod
from scheduler_app.embedded.parent_death import with_parent_death_signal
from scheduler_app.embedded.server import DidNotStart, Server, free_port, is_free, write_private
