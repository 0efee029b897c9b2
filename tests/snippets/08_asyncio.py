import asyncio


async def fetch(name, delay):
    await asyncio.sleep(delay)
    return f"{name} done"


async def main():
    results = await asyncio.gather(fetch("slow", 0.05), fetch("fast", 0.01))
    print(results)
    queue = asyncio.Queue()

    async def producer():
        for i in range(3):
            await queue.put(i)
        await queue.put(None)

    async def consumer():
        while (item := await queue.get()) is not None:
            print("got", item)

    await asyncio.gather(producer(), consumer())
    try:
        await asyncio.wait_for(asyncio.sleep(10), timeout=0.01)
    except asyncio.TimeoutError:
        print("timed out")


asyncio.run(main())
