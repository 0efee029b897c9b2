import sys
from functools import lru_cache


@lru_cache(maxsize=None)
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def hanoi(n, a="A", b="B", c="C"):
    return [] if n == 0 else hanoi(n - 1, a, c, b) + [(a, c)] + hanoi(n - 1, b, a, c)


def depth(n):
    return 0 if n == 0 else 1 + depth(n - 1)


print(fib(200), len(hanoi(10)), hanoi(2))
try:
    depth(10**6)
except RecursionError as e:
    print("RecursionError:", e)
sys.setrecursionlimit(20_000)
print(depth(15_000))
