"""Golden files: what the product shows at its outermost layers, written down once and compared ever after.

`files/` holds every route's answers for a recorded run of requests, the documents that this run leaves in
MongoDB, the messages that it puts into the broker, the requests that its receivers get, and what the commands
print. The tests make all of it anew and compare. `python -m tests.golden` writes the files anew.
"""
