def parse(record):
    return int(record["age"])


def average(records):
    return sum(parse(r) for r in records) / len(records)


def report(records):
    print("Average age:", average(records))


report([{"age": "30"}, {"age": "41"}])
report([{"age": "30"}, {"age": "n/a"}])
