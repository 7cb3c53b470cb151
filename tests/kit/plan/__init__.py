"""Plans: recorded, put together by hand, as large as there are, and the edges that each has."""
