package queue

// Waiting is how many calls of a Store wait for a ring: what a test needs to know before it rings.
func Waiting(s *Store) int64 { return s.bells.waiting.Load() }
