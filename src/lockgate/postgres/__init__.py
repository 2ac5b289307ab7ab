"""How a PostgreSQL server is reached, by destinations and sources alike."""
