"""The Python package on a directory, as interop_test.go needs it: does what each line of stdin says, answers with a line.

Payloads are passed as JSON values, or with "raw" as the payload's own text.
"""

import json
import sys

import localqueue


class Raw:
    def dumps(self, value):
        return value.encode()

    def loads(self, data):
        return data.decode()


def open_queue(path, name, lease, retries, raw):
    more = {"serializer": Raw()} if raw else {}
    if hasattr(localqueue, "DeliveryPolicy"):  # from 1.3 on
        return localqueue.SimpleQueue(path, name, delivery=localqueue.DeliveryPolicy(lease, retries), **more)
    return localqueue.SimpleQueue(path, name, lease_seconds=lease, max_retries=retries, **more)


def plain(failed):
    """A dead letter as a list: a record from 1.3 on, a dict before."""
    get = failed.get if isinstance(failed, dict) else lambda key: getattr(failed, key)
    return [get("id"), get("data"), get("attempts"), get("last_error")]


def do(path, jobs, what, queue="jobs", lease=60.0, retries=3, raw=False, id=None, **args):
    q = open_queue(path, queue, lease, retries, raw)
    try:
        if what == "put":
            return q.put(args["data"], args.get("job_id"))
        if what == "get":
            try:
                job = q.get_nowait()
            except localqueue.Empty:
                return None
            jobs[job.id] = job
            return {"id": job.id, "data": job.data, "attempts": job.attempts}
        if what == "stats":
            return q.stats()
        if what == "failed":
            return [plain(f) for f in q.list_failed()]
        if what == "retry":
            return q.retry_failed(id)
        if what == "reclaim":
            return q.reclaim_expired_leases()
        if what == "purge":
            return q.purge(0, include_failed=True)
        if what == "ack":
            return q.ack(jobs[id])
        if what == "nack":
            return q.nack(jobs[id], **args)
        if what == "fail":
            return q.fail(jobs[id], args["last_error"])
        raise ValueError(what)
    finally:
        q.close()


jobs = {}
for line in sys.stdin:
    try:
        answer = {"ok": do(sys.argv[1], jobs, **json.loads(line))}
    except Exception as error:
        answer = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(answer), flush=True)
