"""What people and beats do."""
