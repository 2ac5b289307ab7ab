-- Orders arrive as files, and payments as lines of one file that grows. Each run takes what is new, and appends it.
SOURCE orders TYPE JSON PARAMS {"path": "data/inbox", "schema": "id INT, customer STRING, amount DECIMAL(10,2)",
    "cursor": "_file"};
SOURCE payments TYPE CSV PARAMS {"path": "data/payments.csv", "schema": "order_id INT, paid_at TIMESTAMP, amount DECIMAL(10,2)",
    "cursor": "paid_at", "lookback": "1 day"};

LOAD new_orders FROM orders;
LOAD new_payments FROM payments;

CHECK "an order costs something" AS SELECT * FROM new_orders WHERE amount <= 0;

EXPORT new_orders TO "out/orders" TYPE PARQUET MODE APPEND;
EXPORT new_payments TO "out/payments" TYPE PARQUET MODE APPEND;
