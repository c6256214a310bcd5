package queue

// Operations of one kind on one queue that meet in a batch are done with one statement: puts of 64 callers cost little more
// than those of a few.

// One statement for many carries a list, and a table for what it returns: from so many on it is the cheaper way
// (BenchmarkMerge).
const (
	manyPuts   = 3
	manyClaims = 4
	manyAcks   = 8
)

// The order within a transaction: settles make room and free keys, puts fill it, claims then find what there is.
const (
	settles = iota
	puts
	claims
	stages
)

func (o *op) stage() int {
	switch {
	case o.put != nil:
		return puts
	case o.claim != nil:
		return claims
	}
	return settles
}

func (o *op) merges() bool { return o.put != nil || o.ack != nil || o.claim != nil }

// alike tells whether one statement can do both.
func (o *op) alike(p *op) bool {
	switch {
	case o.put != nil && p.put != nil:
		return o.put.q.name == p.put.q.name && o.put.spec.maxRetries == p.put.spec.maxRetries
	case o.ack != nil && p.ack != nil:
		return o.ack.q.name == p.ack.q.name
	case o.claim != nil && p.claim != nil:
		return o.claim.q.name == p.claim.q.name && o.claim.q.cfg.lease == p.claim.q.cfg.lease
	}
	return false
}

// run does the operations of these calls. errs takes their own failures; the error is one that spoils the transaction.
func (t *txn) run(calls []*call, errs []error) error {
	if len(calls) == 1 {
		return t.runOne(calls[0].Op, &errs[0])
	}
	done := make([]bool, len(calls))
	for stage := range stages {
		for i, c := range calls {
			if done[i] || c.Op.stage() != stage {
				continue
			}
			group := []int{i}
			for j := i + 1; c.Op.merges() && j < len(calls); j++ {
				if !done[j] && c.Op.alike(calls[j].Op) {
					group = append(group, j)
					done[j] = true
				}
			}
			if err := t.runGroup(calls, group, errs); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *txn) runOne(o *op, failure *error) error {
	err := o.run(t)
	passing(betweenCalls)
	if err != nil && (o.alone || !isOwnFailure(err)) && !plantedSwallow() {
		return err
	}
	if !plantedSwallow() {
		*failure = err
	}
	return nil
}

func (t *txn) runGroup(calls []*call, group []int, errs []error) error {
	o := calls[group[0]].Op
	switch {
	case o.put != nil && len(group) >= manyPuts:
		return t.mergePuts(calls, group)
	case o.claim != nil && len(group) > 1:
		return t.mergeClaims(calls, group)
	case o.ack != nil && len(group) >= manyAcks:
		return t.mergeAcks(calls, group, errs)
	}
	for _, at := range group {
		if err := t.runOne(calls[at].Op, &errs[at]); err != nil {
			return err
		}
	}
	return nil
}

func (t *txn) mergeAcks(calls []*call, group []int, errs []error) error {
	refs := make([]Ref, len(group))
	for i, at := range group {
		refs[i] = calls[at].Op.ack.ref
	}
	each, err := calls[group[0]].Op.ack.q.ackRefs(t, refs)
	if err != nil {
		return err
	}
	for i, at := range group {
		errs[at] = each[i]
	}
	return nil
}

// mergePuts: only plain puts get here, which can't fail by themselves.
func (t *txn) mergePuts(calls []*call, group []int) error {
	q := calls[group[0]].Op.put.q
	specs := make([]*putSpec, len(group))
	for i, at := range group {
		specs[i] = calls[at].Op.put.spec
	}
	res, _, err := q.putMany(t, specs)
	if err != nil {
		return err
	}
	for i, at := range group {
		*calls[at].Op.put.res = res[i]
	}
	return nil
}

// mergeClaims deals out what one claim finds, in order: one job to each caller first, then the rest.
func (t *txn) mergeClaims(calls []*call, group []int) error {
	wanted := 0
	for _, at := range group {
		wanted += calls[at].Op.claim.n
		*calls[at].Op.claim.jobs = nil
	}
	jobs, err := calls[group[0]].Op.claim.q.claimIn(t, min(wanted, maxClaim))
	if err != nil {
		return err
	}
	share := make([]int, len(group))
	left := len(jobs)
	for i := range group {
		if left > 0 {
			share[i], left = 1, left-1
		}
	}
	for i, at := range group {
		more := min(left, calls[at].Op.claim.n-share[i])
		share[i], left = share[i]+more, left-more
	}
	for i, at := range group {
		o := calls[at].Op.claim
		*o.jobs, jobs = jobs[:share[i]:share[i]], jobs[share[i]:]
		for _, j := range *o.jobs {
			j.queue = o.q
		}
	}
	return nil
}
