"""The web server under the API: waitress as gunicorn's worker class.

waitress gives threads to complete requests only: a client that sends or reads slowly costs a buffer in its
event loop. This package makes it strict about what a request is, and gives slow clients deadlines.
"""
