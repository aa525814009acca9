"""A witness that judges the hour at hand again and again, at its own pace: more than any does that runs."""

from scheduler_app.clock import clock
from scheduler_app.config import load_settings
from scheduler_app.domain.ledger import hour_of
from scheduler_app.witness.accounting import account_of
from scheduler_app.witness.process import paced, witness_of


def main() -> None:
    store, _ = witness_of(load_settings())
    rest = paced()
    while True:
        account_of(store.history, hour_of(clock.now()), rest=rest)
        rest()


if __name__ == "__main__":
    main()
