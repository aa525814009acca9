"""Cron expressions, translated once to recurrence rules that the one evaluator evaluates.

Vixie's five fields (crontab(5)) with names, lists, ranges and steps, `@hourly` … `@yearly`, Quartz's `L`, `W`
and `#`, and seconds as a sixth field. Each expression becomes rules that fire at exactly the same times, or
is refused with the reason and with what to use instead.
"""
