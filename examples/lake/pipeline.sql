-- Orders and customers as Delta tables. Both exports become visible in one transaction of the log.
--   lockgate run pipeline.sql
--   lockgate run pipeline.sql --var day=2
--   lockgate table history lake.customers

SOURCE given TYPE CSV PARAMS {
  "path": "data/orders-${day|1}.csv",
  "schema": "id BIGINT, customer STRING, amount DECIMAL(10,2), ordered DATE"
};
LOAD orders FROM given;

CREATE TABLE customers AS
  SELECT customer, max(ordered) AS last_order, sum(amount) AS amount FROM orders GROUP BY customer;

CHECK "no negative amounts" AS SELECT * FROM orders WHERE amount < 0;

EXPORT orders TO "lake.orders" TYPE DELTA OPTIONS {"partition_by": ["ordered"]} MODE UPSERT KEY (id, ordered);
EXPORT customers TO "lake.customers" TYPE DELTA MODE UPSERT KEY (customer);
