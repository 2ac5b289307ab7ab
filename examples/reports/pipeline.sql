-- One text for two environments: INCLUDE, IF and variables.
-- lockgate plan pipeline.sql --profile prod       shows what production would do
-- lockgate run  pipeline.sql

INCLUDE "common/sources.sql";

SET month = "${MONTH|2026-01}";

CREATE TABLE monthly AS
  SELECT page, sum(visits) AS visits
  FROM visits_raw
  WHERE date_format(day, 'yyyy-MM') = '${month}'
  GROUP BY page;

IF ${env|dev} == 'prod' THEN
  EXPORT SELECT * FROM monthly ORDER BY page TO "out/monthly-${month}.csv" TYPE CSV MODE APPEND AS monthly_archive;
ELSE
  EXPORT SELECT * FROM monthly ORDER BY visits DESC LIMIT 10 TO "out/top_pages.csv" TYPE CSV MODE REPLACE;
END IF;
