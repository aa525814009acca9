"""RabbitMQ as its operators handle it."""

import os
import subprocess

from scheduler_app.broker.rabbitmq.transport import LANES, lane_queue, name_prefix
from scheduler_app.broker.task import QUEUE
from scheduler_app.embedded import RabbitMQ, find_rabbitmq_server

#: As parts of the machine's memory: nobody stays below the first, and the second is RabbitMQ's default.
NO_MEMORY, USUAL_MEMORY = "0.000001", "0.4"


def control(server: RabbitMQ, *command: str) -> str:
    """Runs RabbitMQ's own command for operators, and returns what it says."""
    program = find_rabbitmq_server().with_name("rabbitmqctl")
    done = subprocess.run(
        [program, "--quiet", *command],
        env=os.environ | server.environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def lane_queues(database: str) -> list[str]:
    """The queues of the deployment with this MongoDB database, as RabbitMQ calls them."""
    return [lane_queue(name_prefix(database), QUEUE, lane) for lane in LANES]
