import sqlite3

conn = sqlite3.connect("shop.db")
cur = conn.cursor()
cur.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, customer TEXT, amount REAL)")
cur.executemany(
    "INSERT INTO orders (customer, amount) VALUES (?, ?)",
    [("alice", 10.5), ("bob", 20.0), ("alice", 4.5), ("carol", 7.25)],
)
conn.commit()
for row in cur.execute(
    "SELECT customer, COUNT(*), SUM(amount) FROM orders GROUP BY customer ORDER BY 3 DESC, 1"
):
    print(row)
conn.close()
