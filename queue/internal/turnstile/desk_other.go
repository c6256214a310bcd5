//go:build !linux

package turnstile

// Without open-file-description locks there is no line: SQLite's lock alone decides, and waiting is trying again.
type desk struct{}

func openDesk(string) (*desk, error)     { return &desk{}, nil }
func (*desk) close() error               { return nil }
func (*desk) anyone() bool               { return false }
func (*desk) seenAnyone() bool           { return false }
func (*desk) behind(int64) bool          { return false }
func (*desk) before(int64) (int64, bool) { return 0, false }
func (*desk) draw() (int64, bool)        { return 0, false }
func (*desk) giveBack(int64)             {}
func (*desk) passBy(int64)               {}
func (*desk) watch(int64) chan struct{}  { return nil }
func (*desk) drawn() int64               { return 0 }
func (*desk) turns() int64               { return 0 }
func (*desk) countTurn()                 {}
