"""Redis as a broker. `backend` is its row in the registry."""
