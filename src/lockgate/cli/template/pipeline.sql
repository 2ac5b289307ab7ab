-- A first pipeline. `lockgate check pipeline.sql`, then `lockgate run pipeline.sql`.

SOURCE users  TYPE CSV PARAMS {"path": "data/users.csv", "header": true};
SOURCE orders TYPE CSV PARAMS {"path": "data/orders.csv", "header": true,
                               "schema": "order_id INT, user_id INT, day DATE, amount DECIMAL(10,2)"};

LOAD users_raw  FROM users;
LOAD orders_raw FROM orders;

CREATE TABLE daily AS
  SELECT o.day, u.country, count(*) AS orders, sum(o.amount) AS amount, '${currency|EUR}' AS currency
  FROM orders_raw o JOIN users_raw u ON u.id = o.user_id
  GROUP BY o.day, u.country;

-- Rows found here stop the run before anything is published.
CHECK "no negative amounts" AS SELECT * FROM orders_raw WHERE amount < 0;

EXPORT SELECT *, grade(amount) AS grade FROM daily ORDER BY day, country
  TO "out/daily.csv" TYPE CSV OPTIONS {"header": true} MODE REPLACE;

EXPORT daily TO "out/daily" TYPE PARQUET OPTIONS {"partition_by": ["day"]} MODE REPLACE;
