"""The tasks of `/tasks`, which run commands."""

from tests.golden.recording import Recording


def record(run: Recording) -> None:
    run.topic = "tasks"
    ask = run.ask
    ask(
        "POST",
        "/tasks",
        {
            "id": "task-1",
            "name": "Task",
            "command": "echo hello",
            "description": "what it does",
            "scheduled_at": "2040-12-01T15:00:00Z",
        },
    )
    ask("POST", "/tasks", {"id": "task-1", "name": "Task", "command": "echo hello"})
    ask("POST", "/tasks", {"id": "task-2", "name": "Two", "command": "echo two"})
    ask("POST", "/tasks?dry_run=true", {"id": "task-3", "name": "Three", "command": "echo three"})
    ask("POST", "/tasks", {"id": "task-3", "name": "Three"})
    ask("POST", "/tasks", {"id": "task-3", "name": "Three", "command": "rm -r /"})
    ask("GET", "/tasks")
    ask("GET", "/tasks?status=pending&limit=1")
    ask("GET", "/tasks/scheduled?from=2040-12-01T00:00:00Z&to=2040-12-02T00:00:00Z")
    ask("GET", "/tasks/task-1")
    ask("GET", "/tasks/none")
    ask(
        "PUT",
        "/tasks/task-1",
        {"id": "task-1", "name": "Renamed", "command": "echo again", "status": "pending"},
    )
    ask("POST", "/tasks/task-2/schedule", {"scheduled_at": "2040-12-01T16:00:00Z"})
    ask("POST", "/tasks/task-2/schedule", {"scheduled_at": "never"})
    ask("POST", "/tasks/task-2/execute")
    run.deliver()
    ask("GET", "/tasks/task-2")
    ask("DELETE", "/tasks/task-1?dry_run=true")
    ask("DELETE", "/tasks/task-1")
    ask("DELETE", "/tasks/task-1")
