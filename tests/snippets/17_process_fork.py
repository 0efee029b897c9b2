import multiprocessing as mp


def is_prime(n):
    return n > 1 and all(n % d for d in range(2, int(n**0.5) + 1))


if __name__ == "__main__":
    with mp.get_context("fork").Pool(4) as pool:
        flags = pool.map(is_prime, range(100))
    print(sum(flags), "primes below 100")
