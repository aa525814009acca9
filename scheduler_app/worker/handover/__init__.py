"""The steps between the claim of a batch and its attempts.

`handover` runs them in this order: `waiting` (until the batch is due), `reading` (schedules and
destinations), `expiry` (late events), `overlap_check` (events that earlier ones hold back), `attempts` (what
each other event becomes), `timeout_leases` (a lease as long as its timeout), `completion_tokens`, `isolation`
(suspects) and `routing` (to the courier, or to flow control first).
"""

from scheduler_app.worker.handover.batch import ClaimedBatch
from scheduler_app.worker.handover.handover import Handover

__all__ = ["ClaimedBatch", "Handover"]
