package chaos

// deliveryRules: each delivery went to one claim, and used up one attempt unless it was given back.
func (x *index) deliveryRules(f *findings) {
	untold := map[string]int{} // deliveries that no claim was told of
	for _, id := range x.ids {
		s := x.stories[id]
		for n, claims := range s.claims {
			if len(claims) > 1 {
				f.add("delivery %d of %v was given to %d claims: %v", n, s, len(claims), claims)
			}
		}
		if s.row == nil {
			continue
		}
		for n := int64(1); n <= s.row.Delivery; n++ {
			if len(s.claims[n]) == 0 {
				untold[s.queue]++
			}
		}
		x.checkAttempts(f, s)
	}
	x.checkClaims(f)
	x.checkUntold(f, untold)
}

// checkAttempts: a claim that was told of counts, unless its delivery was given back. Of a claim that nobody was told of it
// is known only if it is in the history.
func (x *index) checkAttempts(f *findings, s *story) {
	r := s.row
	least, most := 0, 0
	for n := int64(1); n <= r.Delivery; n++ {
		released := s.anyOf(n, opRelease, (*call).took)
		maybe := s.anyOf(n, opRelease, (*call).open)
		_, kept := r.kept(n)
		if !released {
			most++
		}
		if (len(s.claims[n]) > 0 || kept) && !released && !maybe {
			least++
		}
	}
	if r.Attempts < least || r.Attempts > most || r.Attempts > r.MaxAttempts {
		f.add("%v: its deliveries make %d to %d attempts", s, least, most)
	}
}

func (x *index) checkClaims(f *findings) {
	for _, c := range x.calls {
		if c.Op != opClaim {
			continue
		}
		if c.Answered && c.Err != "" && c.Err != errEmpty && c.Err != errEnded {
			f.add("an answer that a claim isn't for: %v", c)
		}
		if c.Err != "" && len(c.Jobs) > 0 {
			f.add("%v was given the jobs %v with its error", c, c.Jobs)
		}
		for _, j := range c.Jobs {
			s := x.stories[j.ID]
			switch {
			case j.Attempt < 1 || j.Attempt > j.Max || int64(j.Attempt) > j.Delivery:
				f.add("%v was given delivery %d of %v as attempt %d of %d", c, j.Delivery, s, j.Attempt, j.Max)
			case j.Token != s.token || j.Key != s.key || c.Queue != s.queue:
				f.add("%v was given %v as %q with key %q", c, s, j.Token, j.Key)
			case s.row != nil && (j.Delivery > s.row.Delivery || j.Max != s.row.MaxAttempts):
				f.add("%v was given delivery %d of %d, which the file doesn't know: %v", c, j.Delivery, j.Max, s)
			}
		}
	}
}

// checkUntold: a delivery that nobody was told of is one of a claim that had no answer.
func (x *index) checkUntold(f *findings, untold map[string]int) {
	could := map[string]int{}
	for _, c := range x.calls {
		if c.Op == opClaim && (!c.Answered || c.Err == errEnded) {
			could[c.Queue] += c.Want
		}
	}
	for name, n := range untold {
		if n > could[name] && !x.workers[name] {
			f.add("queue %s: %d deliveries went to nobody, and only %d can have gone to claims that had no answer", name, n, could[name])
		}
	}
}
