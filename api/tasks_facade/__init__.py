"""/tasks: commands that are run once, by hand or at a time.

A facade: a task is a schedule with the tag `task` and a command, whose trigger is `on_demand` or `run_at`.
What happens to it is what happens to every schedule; its history is at /api/v1/schedules/{id}/events/history.
"""
