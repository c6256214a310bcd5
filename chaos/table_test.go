//go:build linux

package chaos

import (
	"fmt"
	"strings"
)

// table tells how many processes were killed where, what became of the calls they had no answer to, and what was verified.
func (k *campaign) table() string {
	var b strings.Builder
	row := func(cells ...any) { fmt.Fprintf(&b, "%-16s %6v  %8v %8v  %8v %8v\n", cells...) }
	row("killed at", "kills", "puts", "stored", "acks", "took")
	sum := tally{}
	for _, p := range k.plans {
		t := k.account.open[p]
		row(p, k.kills[p], t.Puts, t.PutsThere, t.Settles, t.EndsThere)
		sum = tally{sum.Puts + t.Puts, sum.PutsThere + t.PutsThere, sum.Settles + t.Settles, sum.EndsThere + t.EndsThere}
	}
	row("all", k.total(), sum.Puts, sum.PutsThere, sum.Settles, sum.EndsThere)
	b.WriteString("puts and acks are those that the killed had no answer to; stored and took, those of them that the file has\n")
	return b.String() + k.account.String()
}

func (a *account) String() string {
	return fmt.Sprintf("verified: %d rounds, %d processes, %d directories, %d jobs, %d entries of history;\n"+
		"%d puts (%d keyed), %d batches, %d batches of imports, %d deliveries,\n"+
		"%d settled (%d with a follow-up), %d refused since the lease was lost\n",
		a.rounds, a.processes, a.dirs, a.jobs, a.history, a.puts, a.keyed, a.batches, a.imports, a.claims, a.settles, a.follows, a.lost)
}
