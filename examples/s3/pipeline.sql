-- Results in a bucket. Set the AWS variables, or the connection in lockgate.toml, and BUCKET to a bucket of yours.
SOURCE visits TYPE CSV PARAMS {"path": "data/visits.csv"};
LOAD visits FROM visits;

CREATE TABLE daily AS SELECT day, count(*) AS visits FROM visits GROUP BY day;

CHECK "every visit has a day" AS SELECT * FROM visits WHERE day IS NULL;

EXPORT SELECT * FROM daily ORDER BY day TO "s3://${BUCKET|lake}/daily.csv" TYPE CSV MODE REPLACE;
EXPORT visits TO "s3://${BUCKET|lake}/visits/" TYPE PARQUET OPTIONS {"partition_by": ["day"]} MODE APPEND;
EXPORT daily TO "s3://${BUCKET|lake}/daily" TYPE PARQUET MODE UPSERT KEY (day);
