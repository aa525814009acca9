"""What `scheduler demo` fills a deployment with: schedules that run, and a week of history made up for them.

Everything is made by the API, but the past, which no API can make. The same seed makes the same week.
"""
