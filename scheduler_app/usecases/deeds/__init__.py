"""What people and programs do: create, edit, pause, redrive, schedule messages."""
