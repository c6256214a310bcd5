package queue

// How a state is stored. Delayed is a ready row that waits for its time.
const (
	statusReady  = 0
	statusLeased = 1
	statusAcked  = 2
	statusFailed = 3
)

// stored returns a state's two columns; ok is false for an unknown state.
func (s State) stored() (status, delayed int64, ok bool) {
	switch s {
	case Ready:
		return statusReady, 0, true
	case Delayed:
		return statusReady, 1, true
	case Leased:
		return statusLeased, 0, true
	case Acked:
		return statusAcked, 0, true
	case Failed:
		return statusFailed, 0, true
	}
	return 0, 0, false
}

func stateOf(status, delayed int64) State {
	switch {
	case status == statusReady && delayed != 0:
		return Delayed
	case status == statusReady:
		return Ready
	case status == statusLeased:
		return Leased
	case status == statusAcked:
		return Acked
	}
	return Failed
}

// reasonOf reads a stored reason. Two names of the Python original (1.3 on) mean what we call permanent.
func reasonOf(text *string) Reason {
	switch r := Reason(deref(text)); r {
	case RetriesExhausted, LeaseExpired, Permanent, InvalidPayload, Panicked, Cancelled:
		return r
	case "permanent_handler_error", "explicit_permanent_failure":
		return Permanent
	}
	return UnknownReason
}
