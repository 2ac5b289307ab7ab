-- Included by pipeline.sql; paths in PARAMS are relative to the project, INCLUDE to the including file.
SOURCE visits TYPE CSV PARAMS {"path": "data/visits.csv", "schema": "day DATE, page STRING, visits INT"};
LOAD visits_raw FROM visits;
