from itertools import accumulate, chain, groupby, islice


def primes():
    found = []
    n = 2
    while True:
        if all(n % p for p in found):
            found.append(n)
            yield n
        n += 1


def flatten(items):
    for item in items:
        if isinstance(item, list):
            yield from flatten(item)
        else:
            yield item


print(list(islice(primes(), 10)))
print(list(flatten([1, [2, [3, [4]], 5]])), list(accumulate([1, 2, 3])))
print({k: list(g) for k, g in groupby("aaabbc")}, list(chain("ab", [1])))
