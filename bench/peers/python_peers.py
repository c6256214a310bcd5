"""One piece of work on one Python queue: the task comes as JSON in argv[1], the answer goes to stdout as one line of JSON.

Each adapter has put, get_ack (returns the payload, or None when there is none), in_force and close; some have put_many.
"""

import json
import sqlite3
import sys
import threading
import time

LEVELS = {"0": "OFF", "1": "NORMAL", "2": "FULL", "3": "EXTRA"}


def pragmas(conn):
    """What is in force on a connection of Python's own sqlite3."""
    one = lambda sql: str(conn.execute(sql).fetchone()[0])
    level = one("PRAGMA synchronous")
    return {
        "journal_mode": one("PRAGMA journal_mode"),
        "synchronous": LEVELS.get(level, level),
        "page_size": one("PRAGMA page_size"),
        "busy_timeout": one("PRAGMA busy_timeout"),
        "sqlite": sqlite3.sqlite_version,
    }


def synchronous(conn, setting):
    """Sets what the package has no option for; the recommended setting is left as the package made it."""
    if setting != "recommended":
        conn.execute("PRAGMA synchronous = " + setting.upper())


class Original:
    """The Python localqueue, 1.0 and 1.4."""

    def __init__(self, path, setting):
        import localqueue

        self.nothing = localqueue.Empty
        full = setting == "full"
        if hasattr(localqueue, "DurabilityMode"):
            mode = localqueue.DurabilityMode
            options = {} if setting == "recommended" else {"durability": mode.DURABLE if full else mode.RELAXED}
            self.put_many = lambda payloads: self.q.put_many(payloads)
        else:
            options = {} if setting == "recommended" else {"fsync": full}
        self.q = localqueue.SimpleQueue(path, **options)
        self.put = self.q.put

    def get_ack(self):
        try:
            job = self.q.get_nowait()
        except self.nothing:
            return None
        self.q.ack(job)
        return job.data

    def in_force(self):
        if hasattr(self.q, "diagnostics"):
            d = self.q.diagnostics()
            mode, level, sqlite, wait = d.journal_mode, d.synchronous, d.sqlite_version, d.busy_timeout_ms
        else:
            mode, level = self.q._native.pragma_settings()
            sqlite, wait = "not told", "not told"
        # The page size is in the file's header. Opening the file is harmless: all connections to it are in this process's
        # only queue, which isn't used again.
        with open(str(self.q.path / "localqueue.db"), "rb") as file:
            page_size = int.from_bytes(file.read(18)[16:], "big")
        return {
            "journal_mode": mode,
            "synchronous": LEVELS[str(level)],
            "page_size": str(page_size),
            "busy_timeout": str(wait),
            "sqlite": sqlite,
        }

    def close(self):
        self.q.close()


class PersistQueue:
    """SQLiteAckQueue, with multithreading=True as documented for several threads."""

    def __init__(self, path, setting):
        import persistqueue

        self.nothing = persistqueue.Empty
        self.q = persistqueue.SQLiteAckQueue(path, multithreading=True)
        for conn in (self.q._getter, self.q._putter):
            synchronous(conn, setting)
        self.acked = 0
        self.put = self.q.put

    def get_ack(self):
        try:
            item = self.q.get(block=False)
        except self.nothing:
            return None
        self.q.ack(item)
        self.acked += 1
        if self.acked % 1000 == 0:
            # A get reads past every acked row, so they have to be cleared now and then.
            self.q.clear_acked_data(max_delete=1000, keep_latest=1000)
        return item

    def in_force(self):
        return pragmas(self.q._putter)

    def close(self):
        self.q.close()


class LiteQueue:
    """One object, and so one connection, per thread: the package has no lock of its own."""

    def __init__(self, path, setting):
        import litequeue

        self.open = lambda: self.tuned(litequeue.LiteQueue(path + "/queue.db"), setting)
        self.local = threading.local()
        self.acked = 0

    def tuned(self, q, setting):
        synchronous(q.conn, setting)
        return q

    def mine(self):
        if not hasattr(self.local, "q"):
            self.local.q = self.open()
        return self.local.q

    def put(self, payload):
        self.mine().put(payload)

    def get_ack(self):
        q = self.mine()
        message = q.pop()
        if message is None:
            return None
        q.done(message.message_id)
        self.acked += 1
        if self.acked % 1000 == 0:
            q.prune()
        return message.data

    def in_force(self):
        return pragmas(self.mine().conn)

    def close(self):
        self.mine().close()


class Huey:
    """A task call and dequeue. Huey deletes a task when it hands it out: there is nothing left to ack."""

    def __init__(self, path, setting):
        import huey

        self.q = huey.SqliteHuey("bench", filename=path + "/queue.db")
        synchronous(self.q.storage.conn, setting)

        @self.q.task()
        def job(data):
            pass

        self.put = job

    def get_ack(self):
        task = self.q.dequeue()
        return None if task is None else task.args[0]

    def in_force(self):
        return pragmas(self.q.storage.conn)

    def close(self):
        self.q.storage.close()


ADAPTERS = {"localqueue": Original, "persist-queue": PersistQueue, "litequeue": LiteQueue, "huey": Huey}


WORKERS = {
    "localqueue": "its Worker runs one job at a time, as in get + ack",
    "persist-queue": "it has no worker",
    "litequeue": "it has no worker",
    "huey": "its consumer is a program of its own",
}


class Payloads:
    def __init__(self, size):
        self.size, self.n, self.lock = size, 0, threading.Lock()

    def next(self):
        with self.lock:
            self.n += 1
            number = str(self.n)
        return number + "x" * max(0, self.size - len(number))


def in_threads(count, seconds, op):
    """Repeats op in count threads; an operation that fails isn't counted as work done, and 20 in a row end a thread."""
    answer = {"jobs": 0, "errors": 0, "first_error": ""}
    lock, started = threading.Lock(), time.perf_counter()

    def run():
        jobs = errors = row = 0
        first = ""
        while row < 20 and time.perf_counter() - started < seconds:
            try:
                jobs += op()
                row = 0
            except Exception as error:
                errors, row, first = errors + 1, row + 1, first or repr(error)
        with lock:
            answer["jobs"] += jobs
            answer["errors"] += errors
            answer["first_error"] = answer["first_error"] or first

    if count == 1:
        run()
    else:
        threads = [threading.Thread(target=run) for _ in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    answer["seconds"] = time.perf_counter() - started
    if answer["errors"] and not answer["jobs"]:
        raise RuntimeError(answer["first_error"])
    return answer


def fill(queue, payloads, n, batch):
    if hasattr(queue, "put_many"):
        while n > 0:
            size = min(n, batch)
            queue.put_many([payloads.next() for _ in range(size)])
            n -= size
        return
    for _ in range(n):
        queue.put(payloads.next())


def draining(queue, payloads, task):
    """get_ack until the time is up; a new backlog is put, outside the time taken, whenever none is left."""
    taken, jobs = 0.0, 0
    while taken < task["seconds"]:
        fill(queue, payloads, task["backlog"], task["batch"])
        left, started = task["backlog"], time.perf_counter()
        while left and taken + time.perf_counter() - started < task["seconds"]:
            if queue.get_ack() is None:
                raise RuntimeError("the queue is empty with %d jobs still to come" % left)
            left, jobs = left - 1, jobs + 1
        taken += time.perf_counter() - started
    return {"jobs": jobs, "seconds": taken}


def exact(queue, payloads, count):
    """Everything that count puts leave to be received."""
    for _ in range(count):
        queue.put(payloads.next())
    received = []
    while (payload := queue.get_ack()) is not None:
        received.append(payload)
    return {"jobs": len(received), "payloads": received}


def measure(queue, task):
    payloads, work = Payloads(task["payload"]), task["work"]

    def put():
        queue.put(payloads.next())
        return 1

    def put_batch():
        queue.put_many([payloads.next() for _ in range(task["batch"])])
        return task["batch"]

    if work == "put":
        return in_threads(1, task["seconds"], put)
    if work == "put-64":
        return in_threads(task["threads"], task["seconds"], put)
    if work == "put-batch":
        if not hasattr(queue, "put_many"):
            return {"absent": "it has no batch form of put"}
        return in_threads(1, task["seconds"], put_batch)
    if work in ("get-ack", "get-ack-100k"):
        return draining(queue, payloads, task)
    if work == "exact":
        return exact(queue, payloads, task["count"])
    if work == "worker":
        return {"absent": WORKERS[task["package"]]}
    return {"absent": "it has no batch form of get and ack"}


def main():
    task = json.loads(sys.argv[1])
    queue = ADAPTERS[task["package"]](task["dir"], task["setting"])
    answer = measure(queue, task)
    answer["in_force"] = queue.in_force()
    queue.close()
    print(json.dumps(answer))


main()
