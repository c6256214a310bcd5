// Package queue is the engine of localqueue: a durable job queue in one SQLite file, shared by goroutines and processes.
//
// A [Store] is a directory with one database file; a [Queue] is a name in it. Payloads are bytes here; package generics
// wraps a Queue for a Go type. Delivery is at least once: a claim leases a job to one receiver, under a fresh receipt,
// and only that receipt settles that delivery. docs/guarantees.md says what holds and what doesn't.
package queue
