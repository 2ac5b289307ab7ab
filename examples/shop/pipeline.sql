-- A shop's daily numbers: three sources, a join, two checks, five exports.
-- lockgate run pipeline.sql --var batch=day1

SET batch = "${batch|day1}";

SOURCE customers TYPE CSV     PARAMS {"path": "data/customers.csv", "schema": "id INT, name STRING, country STRING"};
SOURCE orders    TYPE JSON    PARAMS {"path": "data/orders_${batch}.jsonl",
                                      "schema": "order_id INT, customer_id INT, product STRING, quantity INT, day DATE"};
SOURCE products  TYPE PARQUET PARAMS {"path": "data/products.parquet"};

LOAD customers_raw FROM customers;
LOAD orders_raw    FROM orders;
LOAD products_raw  FROM products;

-- Read by a check and by three exports, and computed once.
CREATE TABLE sales AS
  SELECT o.order_id, o.day, c.name AS customer, c.country, o.product,
         o.quantity, p.price, o.quantity * p.price AS amount
  FROM orders_raw o
  JOIN customers_raw c ON c.id = o.customer_id
  LEFT JOIN products_raw p ON p.product = o.product;

CREATE TABLE daily AS
  SELECT day, country, count(*) AS orders, sum(amount) AS amount, sum(vat(amount, country)) AS vat
  FROM sales
  GROUP BY day, country;

CHECK "every order has a price"  AS SELECT order_id, product FROM sales WHERE price IS NULL;
CHECK "no negative quantities"   AS SELECT order_id, quantity FROM orders_raw WHERE quantity < 0;

EXPORT SELECT * FROM daily ORDER BY day, country
  TO "out/daily.csv" TYPE CSV OPTIONS {"header": true} MODE REPLACE;

EXPORT SELECT customer, sum(amount) AS amount FROM sales GROUP BY customer ORDER BY amount DESC
  TO "out/best_customers.json" TYPE JSON MODE REPLACE;

EXPORT SELECT * FROM sales ORDER BY order_id
  TO "out/latest_sales.parquet" TYPE PARQUET MODE REPLACE;

-- Every run adds its files to the folder; nothing that is there is touched.
EXPORT sales TO "out/sales" TYPE PARQUET OPTIONS {"partition_by": ["day"]} MODE APPEND;

-- A Delta table that is kept up to date by key, one version a run; any reader of Delta tables reads it.
EXPORT daily TO "shop.daily" TYPE DELTA MODE UPSERT KEY (day, country);
