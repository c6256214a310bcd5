package main

// work is a kind of work to measure.
type work string

const (
	workPut           work = "put"
	workGetAck        work = "get-ack"
	workPutConcurrent work = "put-64"
	workPutBatch      work = "put-batch"
	workGetAckBatch   work = "get-ack-batch"
	workWorker        work = "worker"
	workGetAckBig     work = "get-ack-100k"
	workExact         work = "exact" // only for the tests: is what was put what is received?
)

const (
	batchSize      = 1000
	goroutines     = 64
	pythonThreads  = 8
	handlers       = 8
	payloadBytes   = 128
	bigPayload     = 100_000
	getBacklog     = 2000
	bigBacklog     = 200
	workerBacklog  = 10_000
	defaultSeconds = 5
)

// works is the order of measuring and of the tables.
var works = []struct {
	work  work
	title string
}{
	{workPut, "put, one goroutine"},
	{workGetAck, "get + ack, one goroutine"},
	{workPutConcurrent, "put, 64 goroutines (Python: 8 threads)"},
	{workPutBatch, "put in batches of 1000"},
	{workGetAckBatch, "get + ack in batches of 1000"},
	{workWorker, "a worker with 8 handlers that do nothing"},
	{workGetAckBig, "get + ack of 100 kB, one goroutine"},
}

// setting is how durable a queue is told to be.
type setting string

const (
	settingNormal      setting = "normal"      // WAL, synchronous=NORMAL
	settingFull        setting = "full"        // WAL, synchronous=FULL
	settingRecommended setting = "recommended" // as the queue's documentation opens it
)

var settings = []setting{settingNormal, settingFull, settingRecommended}

// taskFor fills in how much of a work is measured.
func taskFor(w work, s setting, seconds float64) task {
	t := task{Work: w, Setting: s, Seconds: seconds, Payload: payloadBytes, Backlog: getBacklog, Batch: batchSize}
	switch w {
	case workGetAckBig:
		t.Payload, t.Backlog = bigPayload, bigBacklog
	case workWorker:
		t.Backlog = workerBacklog
	}
	return t
}
