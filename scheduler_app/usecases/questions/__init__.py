"""What people ask: figures, calendars, forecasts, explanations, the backlog."""
