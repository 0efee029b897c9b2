import threading
import time
from concurrent.futures import ThreadPoolExecutor, as_completed

lock = threading.Lock()
counter = 0


def work(n):
    global counter
    time.sleep(0.01)
    with lock:
        counter += n
    return n * n


with ThreadPoolExecutor(max_workers=8) as pool:
    futures = {pool.submit(work, n): n for n in range(20)}
    squares = {futures[f]: f.result() for f in as_completed(futures)}
print(sum(squares.values()), counter, squares[7])
