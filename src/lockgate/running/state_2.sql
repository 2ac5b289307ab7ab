-- How far each incremental source has been read, and what a run that publishes will make of it.
ALTER TABLE runs ADD COLUMN watermarks TEXT;  -- JSON by source; they become current when the run is published

CREATE TABLE watermarks (
  pipeline  TEXT NOT NULL,
  profile   TEXT NOT NULL,
  source    TEXT NOT NULL,      -- its name, in lower case
  version   INTEGER NOT NULL,   -- grows by one with each run that moves it
  run       TEXT NOT NULL,      -- which moved it last
  watermark TEXT NOT NULL,      -- JSON
  PRIMARY KEY (pipeline, profile, source)
);
