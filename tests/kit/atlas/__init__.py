"""A real Apache Atlas, what was said with one, and what it is told case by case."""
