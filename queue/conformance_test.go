package queue_test

import (
	"slices"
	"testing"
)

// The conformance suite: the contract of a queue, rule by rule, on every shape of the system. A case is named by its
// rule. It finds a fresh directory, with one or more Stores on it, each operation going to the next of them.
type conformanceCase struct {
	name string
	run  func(t *testing.T, w *world)
	with storeOpts
}

var suite = slices.Concat(putCases, keyCases, optionCases, batchCases, txCases, settleTxCases, roomCases, orderCases, claimCases,
	settleCases, lostCases, historyCases, manyCases, deadCases, retryCases, statsCases, listCases, peekCases, purgeCases, pauseCases,
	actCases, oddRowCases, wakeCases, storeCases, busyCases, clockCases)

func TestConformance(t *testing.T) {
	for _, s := range shapes {
		t.Run(s.name, func(t *testing.T) {
			for _, c := range suite {
				t.Run(c.name, func(t *testing.T) {
					t.Parallel()
					w := newWorld(t, s, c.with)
					c.run(t, w)
					w.verify()
				})
			}
		})
	}
}

// noneTwice makes the names of the cases unique.
func TestConformanceNamesEachCaseOnce(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range suite {
		if seen[c.name] {
			t.Errorf("%s stands twice", c.name)
		}
		seen[c.name] = true
	}
}
