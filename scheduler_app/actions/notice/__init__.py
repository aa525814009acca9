"""The action kind `notice`: what notifications say by mail and by services that Apprise reaches.

Each is sent by a process of its own.
"""
