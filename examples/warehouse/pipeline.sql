-- Sales by day into PostgreSQL: a table that is kept up to date by its key, and a log that grows.
-- lockgate check pipeline.sql
-- lockgate run   pipeline.sql

SOURCE sales TYPE CSV PARAMS {"path": "data/sales.csv", "header": true};
LOAD sales_raw FROM sales;

CREATE TABLE daily AS
  SELECT CAST(day AS DATE) AS day, CAST(sum(amount) AS DECIMAL(12, 2)) AS amount, count(*) AS sales
  FROM sales_raw
  GROUP BY day;

CHECK "no day without sales" AS SELECT * FROM daily WHERE sales = 0;

EXPORT daily TO "public.daily_sales" TYPE POSTGRES OPTIONS {"connection": "warehouse_pg", "lock_timeout": 30}
  MODE UPSERT KEY (day);
EXPORT SELECT *, current_timestamp() AS written FROM daily TO "public.daily_sales_log" TYPE POSTGRES
  OPTIONS {"connection": "warehouse_pg"} MODE APPEND;
