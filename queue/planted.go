//go:build !planted

package queue

import "github.com/localqueue/localqueue/queue/internal/turnstile"

// The harnesses must catch a broken product before they count. Built with the tag planted, the engine breaks in the way
// that the environment names (see planted_faults.go); without it these are constants, and cost nothing.

func (s *Store) plantedEarlyClock() int64                        { return 0 }
func (s *Store) plantedTime(now int64) int64                     { return now }
func plantedSwallow() bool                                       { return false }
func plantedMarkless() bool                                      { return false }
func passing(point)                                              {}
func plantedUnsynced() bool                                      { return false }
func plantedEarlyAnswer() bool                                   { return false }
func plantedSilence() bool                                       { return false }
func plantedDeafness() bool                                      { return false }
func plantedPatience() bool                                      { return false }
func plantedPatientReaders() bool                                { return false }
func plantedNoCheckpoint() bool                                  { return false }
func plantedNoSnapshot() bool                                    { return false }
func plantedTornCopy(_, _ string) error                          { return nil }
func plantedKeeping() bool                                       { return false }
func plantedAnswer(_ int, err error) error                       { return err }
func plantedTimes(t turnstile.Times) turnstile.Times             { return t }
func (q *Queue) plantedReceipt(_ *txn, _ int64, r string) string { return r }
func (q *Queue) plantedStaleReclaim(_ *txn) error                { return nil }
func (q *Queue) plantedAfterReclaim(_ *txn, _ []int64) error     { return nil }
func (q *Queue) plantedAfterAck(_ *txn) error                    { return nil }
