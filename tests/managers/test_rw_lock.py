from __future__ import annotations

import asyncio
import random

from bough.managers.rw_lock import ReaderWriterLock


def test_readers_share_and_a_writer_is_alone() -> None:
    async def run() -> None:
        lock = ReaderWriterLock()
        readers = writers = 0
        most_readers = 0
        chance = random.Random(3)

        async def read() -> None:
            nonlocal readers, most_readers
            await lock.acquire_reader()
            try:
                readers += 1
                most_readers = max(most_readers, readers)
                assert writers == 0
                await asyncio.sleep(chance.random() * 0.002)
            finally:
                readers -= 1
                lock.release_reader()

        async def write() -> None:
            nonlocal writers
            async with lock.writer_lock():
                try:
                    writers += 1
                    assert writers == 1
                    assert readers == 0
                    await asyncio.sleep(chance.random() * 0.002)
                finally:
                    writers -= 1

        tasks = []
        for _ in range(200):
            tasks.append(asyncio.create_task(read() if chance.random() < 0.8 else write()))
            if chance.random() < 0.2:
                chance.choice(tasks).cancel()
            await asyncio.sleep(0.0005)
        results = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 10)
        assert not [result for result in results if isinstance(result, AssertionError)]
        assert most_readers > 1

    asyncio.run(run())


def test_waiting_writer_is_not_starved_by_new_readers() -> None:
    async def run() -> None:
        lock = ReaderWriterLock()
        await lock.acquire_reader()
        order: list[str] = []

        async def write() -> None:
            async with lock.writer_lock():
                order.append("writer")

        async def read() -> None:
            await lock.acquire_reader()
            order.append("reader")
            lock.release_reader()

        writer = asyncio.create_task(write())
        await asyncio.sleep(0)
        readers = [asyncio.create_task(read()) for _ in range(3)]
        await asyncio.sleep(0.01)
        assert order == []
        lock.release_reader()
        await asyncio.gather(writer, *readers)
        assert order == ["writer", "reader", "reader", "reader"]

    asyncio.run(run())


def test_writer_that_gives_up_lets_readers_in() -> None:
    async def run() -> None:
        lock = ReaderWriterLock()
        await lock.acquire_reader()

        async def write() -> None:
            async with lock.writer_lock():
                raise AssertionError("was cancelled")

        writer = asyncio.create_task(write())
        await asyncio.sleep(0)
        reader = asyncio.create_task(lock.acquire_reader())
        await asyncio.sleep(0)
        assert not reader.done()
        writer.cancel()
        await asyncio.wait_for(reader, 1)

    asyncio.run(run())
