"""Results that are kept in one SQLite file, and tuning that resumes from it."""
