#!/usr/bin/env python3
"""Makes the fixtures of this directory: files that the Python package localqueue wrote, a version each.

    make.py                  every version that isn't there yet, with the packages from PyPI
    make.py --wheels DIR     the same, with wheels from a directory (pip download 'localqueue[bus]==1.4.1' -d DIR)

VERSION.db.gz is the file as the package left it. VERSION.json says what each job is: its state as the calls below
mean it, its payload's hash, the rest as it stands in its row; and the other tables, the schema, and the package's stats. A fixture that is there is never written again: tests compare with its
bytes. To make one anew, remove it first. Stamps and receipts differ from run to run, nothing else does.
"""

import asyncio
import gzip
import hashlib
import json
import os
import pathlib
import sqlite3
import subprocess
import sys
import tempfile
import time

VERSIONS = ["1.0.0", "1.1.0", "1.2.0", "1.4.1"]
HERE = pathlib.Path(__file__).resolve().parent
FOREVER = 80 * 365 * 86400  # seconds: open leases and delays outlive whoever runs the tests


class Raw:
    """A serializer that passes bytes through."""

    def dumps(self, value):
        return value

    def loads(self, data):
        return data


class File:
    """One directory of the package, and what was meant with each job put into it."""

    def __init__(self, path):
        self.path = path
        self.meant = {}  # id -> (state, note)
        self.open = []

    def queue(self, name, lease=60.0, retries=3, **more):
        from localqueue import SimpleQueue

        try:
            from localqueue import DeliveryPolicy
        except ImportError:  # before 1.3
            q = SimpleQueue(self.path, name, lease_seconds=lease, max_retries=retries, **more)
        else:
            q = SimpleQueue(self.path, name, delivery=DeliveryPolicy(lease, retries), **more)
        self.open.append(q)
        return q

    def mean(self, id, state, note):
        self.meant[id] = (state, note)

    def close(self):
        for q in self.open:
            q.close()


def payloads(f):
    """Ready jobs with payloads that are hard to keep."""
    q = f.queue("payloads")
    deep = []
    for _ in range(60):
        deep = [deep]
    for note, value in {
        "object": {"task": "send-email", "to": "hello@example.com"},
        "text of many scripts": "grüße, 世界, 🎉, <script>&",
        "a surrogate alone": "\ud800",
        "a zero byte": "a\u0000b",
        "NaN": {"x": float("nan")},
        "infinities": [float("inf"), float("-inf")],
        "a big integer": {"id": 1970670598291982290},
        "a huge integer": 10**30,
        "a negative huge integer": [-(2**63) - 1],
        "floats": [0.1, 1e308, 5e-324, -0.0],
        "nested": deep,
        "empty text": "",
        "empty list": [],
        "null": None,
        "ten kilobytes": "0123456789" * 1000,
        "sixty kilobytes": ["x" * 100] * 600,
    }.items():
        f.mean(q.put(value), "ready", note)
    raw = f.queue("payloads", serializer=Raw())
    for note, data in {
        "no bytes": b"",
        "not UTF-8": b"\x00\xff\xfe\x80",
        "UTF-8 as it is": '{"ü": "世"}'.encode(),
        "not JSON": b"{'single': 'quotes'}",
    }.items():
        f.mean(raw.put(data), "ready", note)


def keys(f):
    """Keyed jobs: in every state a key blocks the next put."""
    q = f.queue("keys")
    for key in ["plain", "schlüssel-世界", "with 'quotes' and \"more\"", ""]:
        id = q.put({"key": key}, job_id=key)
        assert q.put("again", job_id=key) == id
        f.mean(id, "ready", "keyed")
    other = f.queue("keys of another queue")
    f.mean(other.put(1, job_id="plain"), "ready", "the same key in another queue")


def delays(f):
    q = f.queue("delays")
    for n in range(4):
        q.put({"n": n}, job_id=f"delayed-{n}")
    first, second, third, fourth = (q.get_nowait() for _ in range(4))
    q.nack(first, delay=FOREVER, last_error="try much later: später")
    f.mean(first.id, "delayed", "sent back with a long delay")
    q.nack(second, delay=0.001, last_error="try later")
    f.mean(second.id, "ready", "sent back with a delay that has passed")
    q.nack(third, last_error="try again")
    f.mean(third.id, "ready", "sent back at once")
    q.nack(fourth)
    f.mean(fourth.id, "ready", "sent back at once, without an error")
    time.sleep(0.01)


def leases(f):
    q = f.queue("leases", lease=FOREVER)
    for n in range(3):
        q.put({"n": n}, job_id=f"leased-{n}")
    f.mean(q.get_nowait().id, "leased", "first delivery")
    job = q.get_nowait()
    q.nack(job, last_error="the first time")
    f.mean(q.get_nowait().id, "leased", "second delivery")
    f.mean(q.get_nowait().id, "leased", "first delivery")
    last = f.queue("leases", lease=FOREVER, retries=0)
    last.put({"n": "last"})
    f.mean(last.get_nowait().id, "leased", "last delivery")


def expired(f):
    """Leases that have ended and that nobody has reclaimed. All are claimed before the first ends: a claim reclaims."""
    q, last = f.queue("expired", lease=1.0), f.queue("expired", retries=0)
    for n in range(3):
        f.mean(q.put({"n": n}, job_id=f"expired-{n}"), "leased", "ended, deliveries remain")
    f.mean(last.put({"n": "last"}, job_id="expired-last"), "leased", "ended, on the last delivery")
    for _ in range(4):
        q.get_nowait()
    time.sleep(1.1)


def done(f):
    q = f.queue("done")
    for n in range(3):
        q.put({"n": n}, job_id=f"done-{n}" if n else None)
    for n in range(3):
        job = q.get_nowait()
        if n == 2:
            q.nack(job, last_error="not yet")
            job = q.get_nowait()
        q.ack(job)
        f.mean(job.id, "acked", "on its second delivery" if n == 2 else "on its first delivery")


def dead(f):
    q = f.queue("dead")
    q.put({"n": 0}, job_id="dead-0")
    q.put({"n": 1})
    job = q.get_nowait()
    q.fail(job, "no such customer: Müller")
    f.mean(job.id, "failed", "explicit_permanent_failure")
    job = q.get_nowait()
    q.fail(job)
    f.mean(job.id, "failed", "explicit_permanent_failure")
    once = f.queue("dead", retries=1)
    once.put({"n": 2}, job_id="dead-2")
    for error in "first", "second":
        job = once.get_nowait()
        once.nack(job, delay=0, last_error=error)
    f.mean(job.id, "failed", "retries_exhausted")
    brief = f.queue("dead", lease=0.001, retries=0)
    id = brief.put({"n": 3})
    brief.get_nowait()
    time.sleep(0.01)
    brief.reclaim_expired_leases()
    f.mean(id, "failed", "its last lease ended")
    id = q.put({"n": 4}, job_id="retried")
    q.fail(q.get_nowait(), "then retried")
    q.retry_failed(id)
    f.mean(id, "ready", "retried by hand")
    purged = f.queue("purged")
    purged.put("gone")
    purged.ack(purged.get_nowait())
    time.sleep(0.002)
    assert purged.purge(0) == 1  # its id is not given again


def bus(f):
    """Events of 1.4.1: subscriptions are queues, and tables of their own point at the jobs."""
    from localqueue.bus import BaseEvent, EventBus, RetryPolicy, SequenceSource, event

    @event(identity=("number",))
    class OrderPlaced(BaseEvent):
        event_name = "order.placed"
        number: int

    class OrderBilled(BaseEvent):
        event_name = "order.billed"
        number: int

    b = EventBus(f.path, "shop")

    @b.handler(OrderPlaced)
    async def bill(placed):
        if placed.number == 2:
            raise ValueError("no such order")
        return OrderBilled.from_parent(placed, number=placed.number)

    @b.handler(OrderBilled)
    async def print_bill(billed):
        pass

    b.subscription("order.placed").config.retry = RetryPolicy.fixed(max_attempts=1, delay=0)

    @b.source(SequenceSource([1, 2, 3], fingerprint="f1"), checkpoint="orders")
    def orders(number):
        return OrderPlaced(number=number)

    async def execute():
        return await asyncio.wait_for(b.execute(orders), 60)

    asyncio.run(execute())
    b.dispatch(OrderPlaced(number=99))
    b.close()


MESSAGE = "id queue payload status attempts max_attempts available_at lease_until receipt last_error job_id created_at updated_at"
STATES = ["ready", "leased", "acked", "failed"]


def describe(version, f):
    """The manifest: each row, beside what was meant."""
    db = sqlite3.connect(os.path.join(f.path, "localqueue.db"))
    db.row_factory = sqlite3.Row
    columns = [r["name"] for r in db.execute("PRAGMA table_info(messages)")]
    assert columns[:5] == MESSAGE.split()[:5], columns
    jobs = []
    for row in db.execute("SELECT * FROM messages ORDER BY id"):
        job = {k: row[k] for k in columns}
        state, note = f.meant.get(job["id"], (None, ""))
        stored = STATES[job.pop("status")]
        if state is None:  # the bus's own
            assert version == "1.4.1" and job["queue"].startswith("__bus__"), job
            state = stored
        assert stored == ("ready" if state == "delayed" else state), (job, state)
        if note in ("explicit_permanent_failure", "retries_exhausted") and "failure_reason" in columns:
            assert job["failure_reason"] == note, job
        data = bytes(job.pop("payload"))
        job = {"state": state, "note": note, "sha256": hashlib.sha256(data).hexdigest(), "strict": strict(data), **job}
        jobs.append(job)
    tables = {}
    for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").fetchall():
        if name != "messages" and not name.startswith("sqlite_"):
            tables[name] = [list(r) for r in db.execute(f"SELECT * FROM {name} ORDER BY 1, 2")]
    schema = [r[0] for r in db.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY type, name")]
    db.close()
    return {"version": version, "made_at": int(time.time() * 1000), "jobs": jobs, "tables": tables, "schema": schema}


def strict(data):
    """Tells whether a payload is JSON as the standard has it, its text Unicode."""

    def refuse(name):
        raise ValueError(name)  # NaN, Infinity

    try:
        json.dumps(json.loads(data.decode(), parse_constant=refuse), ensure_ascii=False).encode()
    except ValueError:
        return False
    return True


def lines(value, depth=0):
    """JSON with a line for each thing in a list or an object of the first two levels."""
    if depth == 2 or not value or not isinstance(value, (dict, list)):
        return json.dumps(value)
    pad = "\n" + " " * (depth + 1)
    if isinstance(value, dict):
        return "{" + ",".join(f"{pad}{json.dumps(k)}: {lines(v, depth + 1)}" for k, v in value.items()) + pad[:-1] + "}"
    return "[" + ",".join(pad + lines(v, depth + 1) for v in value) + pad[:-1] + "]"


def make(version, out):
    """Runs with the package of that version importable."""
    with tempfile.TemporaryDirectory() as path:
        f = File(path)
        for part in (payloads, keys, delays, leases, expired, done, dead):
            part(f)
        if version == "1.4.1":
            bus(f)
        stats = {q.name: q.stats() for q in f.open}
        f.close()
        assert not os.path.exists(os.path.join(path, "localqueue.db-wal")), "the package left a WAL"
        data = pathlib.Path(path, "localqueue.db").read_bytes()
        manifest = describe(version, f)
        manifest["stats"] = dict(sorted(stats.items()))
    with open(out / f"{version}.json", "w", encoding="utf-8") as file:
        file.write(lines(manifest) + "\n")
    with open(out / f"{version}.db.gz", "wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:
        packed.write(data)


def main(args):
    if args[:1] == ["--one"]:
        return make(args[1], HERE)  # in a process that has that version of the package
    wheels = ["--no-index", "--find-links", args[1]] if args[:1] == ["--wheels"] else []
    for version in VERSIONS:
        if (HERE / f"{version}.db.gz").exists():
            print(version, "is there")
            continue
        with tempfile.TemporaryDirectory() as target:
            what = f"localqueue[bus]=={version}" if version == "1.4.1" else f"localqueue=={version}"
            subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--only-binary", ":all:", "--target", target, *wheels, what], check=True)
            env = {**os.environ, "PYTHONPATH": target}
            subprocess.run([sys.executable, __file__, "--one", version], check=True, env=env)
        print(version, "made")


if __name__ == "__main__":
    main(sys.argv[1:])
