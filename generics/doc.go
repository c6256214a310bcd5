// Package generics is localqueue with types: a [Queue] takes and gives values of a Go type, a [Job] is one delivery of
// such a value, and a [Worker] runs a handler for each of them.
//
// A Queue encodes with a [Codec] (JSON unless told otherwise) and stands on a [queue.Queue] of bytes, which
// [Queue.Raw] returns for everything that has no type in it: looking, retrying, pausing, purging. What is promised about
// jobs, leases and attempts is documented there; this package adds what follows from the types and the Worker.
//
// A job is delivered at least once. A handler may run again for a job whose lease ended, so its effects should bear
// that; effects in the same file don't have to, see [Job.AckWith].
package generics
