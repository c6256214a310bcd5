// Package chaos is the kill campaign and the soak: processes that share a queue are killed and stopped at random moments and
// at every named point of the engine (queue/points.go), and afterwards what the clients wrote down must agree with the file.
//
// Each process keeps a journal: a line before every call, a line after its answer. A call that was answered has happened; one
// that was not, because its process died, may have happened, once and as a whole. The rules (putRules, deliveryRules,
// endRules, fileRules) are pure functions over the journals and the rows; tests of their own feed them wrong data.
//
//	make chaos KILLS=2000
//	make soak DURATION=60s
package chaos
