-- Cleaning sensor readings: bound parameters, a Python function, a check, compressed output.
-- lockgate run pipeline.sql
-- lockgate run pipeline.sql --var max_reading:double=20      stops at the check

SOURCE readings TYPE CSV PARAMS {
  "path": "data/readings.csv.gz",
  "delimiter": ";",
  "null_value": "n/a",
  "schema": "sensor STRING, taken TIMESTAMP, celsius DOUBLE, note STRING"
};
LOAD raw FROM readings;

CREATE TABLE clean AS
  SELECT sensor_name(sensor) AS sensor, taken, celsius, nullif(trim(note), '') AS note
  FROM raw
  WHERE celsius IS NOT NULL;

-- :names are bound by Spark, never pasted into the text.
CHECK "readings are within the sensor's range" AS
  SELECT * FROM clean WHERE celsius NOT BETWEEN :min_reading AND :max_reading;

EXPORT SELECT * FROM clean ORDER BY sensor, taken
  TO "out/readings.csv.gz" TYPE CSV OPTIONS {"delimiter": ";", "null_value": "n/a"} MODE REPLACE;

EXPORT SELECT sensor, min(celsius) AS lowest, max(celsius) AS highest FROM clean GROUP BY sensor ORDER BY sensor
  TO "out/range.json" TYPE JSON MODE REPLACE;
