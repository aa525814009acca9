"""The web server under the API: a worker class for gunicorn that gives a thread to complete requests only.

A client that sends or reads slowly costs a buffer in the event loop, with deadlines, and never a thread.
"""
