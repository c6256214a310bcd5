package queue_test

import (
	"context"
	"time"

	"github.com/localqueue/localqueue/queue"
)

// queueOps are the operations on a queue, by the name they have in a message.
var queueOps = map[string]func(context.Context, *queue.Queue, wireRequest) wireResponse{
	"put": func(ctx context.Context, q *queue.Queue, r wireRequest) wireResponse {
		return wirePut(q.Put(ctx, r.Jobs[0].Payload, r.Jobs[0].options()...))
	},
	"tryPut": func(ctx context.Context, q *queue.Queue, r wireRequest) wireResponse {
		return wirePut(q.TryPut(ctx, r.Jobs[0].Payload, r.Jobs[0].options()...))
	},
	"putMany": func(ctx context.Context, q *queue.Queue, r wireRequest) (out wireResponse) {
		out.Puts, out.Err.error = q.PutMany(ctx, r.newJobs())
		return out
	},
	"tryPutMany": func(ctx context.Context, q *queue.Queue, r wireRequest) (out wireResponse) {
		out.Puts, out.Err.error = q.TryPutMany(ctx, r.newJobs())
		return out
	},
	"checkPut": func(_ context.Context, q *queue.Queue, r wireRequest) wireResponse {
		return wireFailed(q.CheckPut(r.Jobs[0].Payload, r.Jobs[0].options()...))
	},
	"get":    func(ctx context.Context, q *queue.Queue, _ wireRequest) wireResponse { return wireJob(q.Get(ctx)) },
	"tryGet": func(ctx context.Context, q *queue.Queue, _ wireRequest) wireResponse { return wireJob(q.TryGet(ctx)) },
	"getMany": func(ctx context.Context, q *queue.Queue, r wireRequest) (out wireResponse) {
		out.Jobs, out.Err.error = q.GetMany(ctx, r.N)
		return out
	},
	"tryGetMany": func(ctx context.Context, q *queue.Queue, r wireRequest) (out wireResponse) {
		out.Jobs, out.Err.error = q.TryGetMany(ctx, r.N)
		return out
	},
	"ack": func(ctx context.Context, q *queue.Queue, r wireRequest) wireResponse {
		return wireFailed(q.Ack(ctx, r.ID, string(r.Receipt)))
	},
	"nack": func(ctx context.Context, q *queue.Queue, r wireRequest) wireResponse {
		return wireFailed(q.Nack(ctx, r.ID, string(r.Receipt), r.cause(), r.settling()...))
	},
	"fail": func(ctx context.Context, q *queue.Queue, r wireRequest) wireResponse {
		return wireFailed(q.Fail(ctx, r.ID, string(r.Receipt), r.cause(), r.settling()...))
	},
	"release": func(ctx context.Context, q *queue.Queue, r wireRequest) wireResponse {
		return wireFailed(q.Release(ctx, r.ID, string(r.Receipt), r.settling()...))
	},
	"extend": func(ctx context.Context, q *queue.Queue, r wireRequest) wireResponse {
		until, err := q.Extend(ctx, r.ID, string(r.Receipt), r.For)
		return wireResponse{Until: []time.Time{until}, Err: carried{err}}
	},
	"ackMany": func(ctx context.Context, q *queue.Queue, r wireRequest) wireResponse {
		return wireEach(q.AckMany(ctx, r.Refs))
	},
	"nackMany": func(ctx context.Context, q *queue.Queue, r wireRequest) wireResponse {
		return wireEach(q.NackMany(ctx, r.Refs, r.cause(), r.settling()...))
	},
	"failMany": func(ctx context.Context, q *queue.Queue, r wireRequest) wireResponse {
		return wireEach(q.FailMany(ctx, r.Refs, r.cause(), r.settling()...))
	},
	"releaseMany": func(ctx context.Context, q *queue.Queue, r wireRequest) wireResponse {
		return wireEach(q.ReleaseMany(ctx, r.Refs, r.settling()...))
	},
	"heartbeat": func(ctx context.Context, q *queue.Queue, r wireRequest) (out wireResponse) {
		beats, err := q.Heartbeat(ctx, r.Refs, r.For)
		for _, b := range beats {
			out.Until, out.Each = append(out.Until, b.LeaseUntil), append(out.Each, carried{b.Err})
		}
		out.Err.error = err
		return out
	},
	"held": func(ctx context.Context, q *queue.Queue, r wireRequest) (out wireResponse) {
		out.Held, out.Err.error = q.Held(ctx, r.Refs)
		return out
	},
	"reclaim": func(ctx context.Context, q *queue.Queue, _ wireRequest) (out wireResponse) {
		out.Reclaimed, out.Err.error = q.ReclaimExpired(ctx)
		return out
	},
	"peek": func(ctx context.Context, q *queue.Queue, _ wireRequest) (out wireResponse) {
		out.Record, out.Err.error = q.Peek(ctx)
		return out
	},
	"show": func(ctx context.Context, q *queue.Queue, r wireRequest) (out wireResponse) {
		out.Record, out.History, out.Err.error = q.Show(ctx, r.ID)
		return out
	},
	"showKey": func(ctx context.Context, q *queue.Queue, r wireRequest) (out wireResponse) {
		out.Record, out.History, out.Err.error = q.ShowKey(ctx, string(r.Key))
		return out
	},
	"list": func(ctx context.Context, q *queue.Queue, r wireRequest) (out wireResponse) {
		out.Page, out.Err.error = q.List(ctx, r.State, r.List)
		return out
	},
	"listFailed": func(ctx context.Context, q *queue.Queue, r wireRequest) (out wireResponse) {
		out.Page, out.Err.error = q.ListFailed(ctx, r.List)
		return out
	},
	"all": func(ctx context.Context, q *queue.Queue, r wireRequest) (out wireResponse) {
		for rec, err := range q.All(ctx, r.State) {
			if err != nil {
				out.Err.error = err
				break
			}
			out.Records = append(out.Records, rec)
		}
		return out
	},
	"retry": func(ctx context.Context, q *queue.Queue, r wireRequest) wireResponse {
		return wireFailed(q.RetryFailed(ctx, r.ID))
	},
	"retryMany": func(ctx context.Context, q *queue.Queue, r wireRequest) (out wireResponse) {
		out.Retried, out.Err.error = q.RetryMany(ctx, r.Retry)
		return out
	},
	"delete": func(ctx context.Context, q *queue.Queue, r wireRequest) wireResponse {
		return wireFailed(q.Delete(ctx, r.ID))
	},
	"deleteMany": func(ctx context.Context, q *queue.Queue, r wireRequest) (out wireResponse) {
		out.N, out.Err.error = q.DeleteMany(ctx, r.Delete)
		return out
	},
	"cancel": func(ctx context.Context, q *queue.Queue, r wireRequest) wireResponse {
		return wireFailed(q.Cancel(ctx, r.ID))
	},
	"runNow": func(ctx context.Context, q *queue.Queue, r wireRequest) wireResponse {
		return wireFailed(q.RunNow(ctx, r.ID))
	},
	"pause": func(ctx context.Context, q *queue.Queue, _ wireRequest) wireResponse { return wireFailed(q.Pause(ctx)) },
	"resume": func(ctx context.Context, q *queue.Queue, _ wireRequest) wireResponse {
		return wireFailed(q.Resume(ctx))
	},
	"keepAcked": func(ctx context.Context, q *queue.Queue, r wireRequest) wireResponse {
		return wireFailed(q.KeepAcked(ctx, r.For))
	},
	"keepForever": func(ctx context.Context, q *queue.Queue, _ wireRequest) wireResponse {
		return wireFailed(q.KeepAckedForever(ctx))
	},
	"applyRetention": func(ctx context.Context, q *queue.Queue, _ wireRequest) (out wireResponse) {
		out.N, out.Err.error = q.ApplyRetention(ctx)
		return out
	},
	"purge": func(ctx context.Context, q *queue.Queue, r wireRequest) (out wireResponse) {
		out.N, out.Err.error = q.Purge(ctx, queue.PurgeOptions{OlderThan: r.For, Failed: r.Failed})
		return out
	},
	"stats": func(ctx context.Context, q *queue.Queue, _ wireRequest) wireResponse {
		st, err := q.Stats(ctx)
		return wireResponse{Stats: []queue.Stats{st}, Err: carried{err}}
	},
}

func wirePut(res queue.PutResult, err error) wireResponse {
	return wireResponse{Puts: []queue.PutResult{res}, Err: carried{err}}
}

func wireJob(j *queue.Job, err error) (out wireResponse) {
	if j != nil {
		out.Jobs = []*queue.Job{j}
	}
	out.Err.error = err
	return out
}

func wireEach(errs []error, err error) (out wireResponse) {
	for _, e := range errs {
		out.Each = append(out.Each, carried{e})
	}
	out.Err.error = err
	return out
}
