"""Where rows come from: how a database is asked for them, and how far an incremental source has come. No Spark here."""
