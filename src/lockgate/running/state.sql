CREATE TABLE runs (
  id            TEXT PRIMARY KEY,
  pipeline      TEXT NOT NULL,
  profile       TEXT NOT NULL,
  started       TEXT NOT NULL,
  finished      TEXT,
  status        TEXT NOT NULL,  -- running, publishing, published, partial, failed, check_failed, superseded
  exit_code     INTEGER,
  error         TEXT,
  superseded_by TEXT,
  result        TEXT            -- the JSON that `run --json` printed
);
CREATE INDEX runs_by_pipeline ON runs (pipeline, started);

CREATE TABLE exports (
  run         TEXT NOT NULL REFERENCES runs (id),
  number      INTEGER NOT NULL,
  name        TEXT NOT NULL,
  status      TEXT NOT NULL,    -- staging, staged, published, failed, discarded
  staging     TEXT NOT NULL,
  prepared    TEXT,             -- JSON; what publishing needs, without secrets
  outcome     TEXT,             -- JSON; what publishing did
  PRIMARY KEY (run, number)
);
