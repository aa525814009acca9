"""What beats do: expand, dispatch, recover, prune, inspect, backfill, notify."""
