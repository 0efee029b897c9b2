import multiprocessing as mp


class Job:
    def __init__(self, n):
        self.n = n


def run(job, queue):
    queue.put((job.n, sum(range(job.n)), type(job).__name__))


if __name__ == "__main__":
    mp.set_start_method("spawn")
    queue = mp.Queue()
    workers = [mp.Process(target=run, args=(Job(n), queue)) for n in (10, 100)]
    for w in workers:
        w.start()
    print(sorted(queue.get() for _ in workers))
    for w in workers:
        w.join()
    print([w.exitcode for w in workers])
