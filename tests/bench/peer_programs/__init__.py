"""Programs that run in the environments of other schedulers, not in this one's: see `tests.bench.peers`."""
