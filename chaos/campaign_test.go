//go:build linux

package chaos

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"
)

// visitors are the roles whose processes pass a point, those that write as they please passing most of them. A point that isn't
// here fails the campaign: add it, and the role if need be.
var visitors = map[string][]string{
	"after-begin":     {roleProduce, roleBatch, roleConsume, roleWork, roleOpen},
	"between-calls":   {roleProduce, roleBatch, roleConsume, roleWork},
	"before-commit":   {roleProduce, roleBatch, roleConsume, roleWork, roleOpen},
	"after-commit":    {roleProduce, roleBatch, roleConsume, roleWork},
	"while-ringing":   {roleProduce, roleBatch, roleConsume, roleWork},
	"while-migrating": {roleMigrate},
	"between-purges":  {rolePurge},
	"in-checkpoint":   {roleBatch},
	"in-vacuum":       {roleVacuum},
	"in-backup":       {roleBackup},
	"before-rename":   {roleBackup},
	"in-import":       {roleImport},
	anyMoment:         {roleProduce, roleBatch, roleConsume, roleWork, roleImport},
	anyOfOther:        {roleOpen, roleLook, rolePurge, roleVacuum, roleBackup, roleMigrate},
}

// campaignRoles are the processes of a round. The last one takes turns: a vacuum empties the WAL, and checkpoints find nothing
// to do beside it.
func campaignRoles(round int) []string {
	last := roleVacuum
	if round%2 == 1 {
		last = roleBatch
	}
	return []string{roleProduce, roleProduce, roleBatch, roleConsume, roleConsume, roleWork, roleOpen, rolePurge, roleLook,
		roleMigrate, roleMigrate, roleBackup, roleImport, roleImport, last}
}

// TestKillCampaign kills processes that share a queue, at every named point (in a planted build) and at any moment, and holds
// what they wrote down against the file. LOCALQUEUE_CHAOS_KILLS sets how many, and then every point must be among them; make
// chaos runs it at length.
func TestKillCampaign(t *testing.T) {
	k := &campaign{t: t, kills: map[string]int{}, planned: map[string]int{}}
	k.most, k.everywhere = killsWanted(t)
	for _, p := range killPoints() {
		k.plans = append(k.plans, p)
		if len(visitors[p]) == 0 {
			t.Fatalf("no process of the campaign passes the point %s", p)
		}
	}
	k.plans = append(k.plans, anyMoment, anyOfOther)
	// Each kill takes a process that starts, comes to its point and leaves a journal to go through.
	k.deadline = time.Now().Add(time.Minute + time.Duration(k.most)*1500*time.Millisecond)
	for k.total() < k.most || len(k.missing()) > 0 {
		k.round()
		if t.Failed() {
			break
		}
		if time.Now().After(k.deadline) {
			t.Errorf("%d of %d kills in the time there is; never killed at %v", k.total(), k.most, k.missing())
			break
		}
	}
	t.Logf("\n%s", k.table())
}

func killsWanted(t *testing.T) (kills int, everywhere bool) {
	text := os.Getenv("LOCALQUEUE_CHAOS_KILLS")
	if text == "" {
		return 25, false
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("LOCALQUEUE_CHAOS_KILLS=%q is no number of kills", text)
	}
	return n, true
}

type campaign struct {
	t          *testing.T
	most       int
	everywhere bool // each plan must have had its kill
	deadline   time.Time
	plans      []string
	kills      map[string]int // that have happened, by plan
	planned    map[string]int // with those that are still to come
	account    account
}

func (k *campaign) total() (n int) {
	for _, each := range k.kills {
		n += each
	}
	return n
}

// missing are the plans that nobody has died by yet, and somebody should.
func (k *campaign) missing() (plans []string) {
	for _, p := range k.plans {
		if k.everywhere && k.kills[p] == 0 {
			plans = append(plans, p)
		}
	}
	return plans
}

const (
	killsPerRound = 40 // then its journals are gone through; more make longer histories
	roundLeast    = 8 * lease
	roundMost     = 30 * lease
)

// round lets a crew loose on a new directory, replaces those that die or end, and verifies what they leave.
func (k *campaign) round() {
	c := newCrew(k.t, nil)
	for _, role := range campaignRoles(k.account.rounds) {
		k.start(c, role)
	}
	goal := min(k.most, k.total()+killsPerRound)
	early, over := time.After(roundLeast), time.After(roundMost)
	for timely := true; timely && !k.t.Failed() && (early != nil || k.total() < goal || goal == k.most && len(k.missing()) > 0); {
		select {
		case m := <-c.gone:
			c.left(m, m.ending.Load())
			k.settle(m)
			k.start(c, m.Role)
		case <-early:
			early = nil
		case <-over:
			timely = false
		}
	}
	rest := slices.Clone(c.running)
	c.end()
	for _, m := range rest { // some come to their point while they end
		k.settle(m)
	}
	c.verify(&k.account)
}

// settle counts what has become of a plan.
func (k *campaign) settle(m *member) {
	switch {
	case m.killed != "":
		k.kills[m.killed]++
	case m.plan != "":
		k.planned[m.plan]--
	}
}

// start starts a process that is to die by the plan that has had the fewest kills, of those that are for its role. A quarter
// of them end by themselves after a while, as do those that don't come to their point.
func (k *campaign) start(c *crew, role string) {
	plan := ""
	if rand.IntN(4) > 0 {
		plan = k.choose(role)
	}
	if plan != "" {
		k.planned[plan]++
	}
	life := time.Duration(20+rand.IntN(400)) * time.Millisecond
	switch plan {
	case "":
		m := c.start(role, plan)
		m.timer = time.AfterFunc(5*life, m.end)
	case anyMoment, anyOfOther:
		m := c.start(role, plan)
		m.timer = time.AfterFunc(life, func() { _ = m.cmd.Process.Kill() })
	default:
		m := c.start(role, plan, fmt.Sprintf("LOCALQUEUE_KILL=%s:%d", plan, passing(plan)))
		m.timer = time.AfterFunc(2*time.Second, m.end)
	}
}

// choose returns "" if no plan for the role is behind: the points that are come to quickly don't make up the campaign.
func (k *campaign) choose(role string) (best string) {
	fewest := k.planned[anyMoment]
	for _, i := range rand.Perm(len(k.plans)) {
		p := k.plans[i]
		fewest = min(fewest, k.planned[p])
		if slices.Contains(visitors[p], role) && (best == "" || k.planned[p] < k.planned[best]) {
			best = p
		}
	}
	if k.planned[best] > 2*fewest+2 {
		return ""
	}
	return best
}

// passing says at which passing of a point to die.
func passing(point string) int {
	switch point {
	case "while-migrating":
		return 1 + rand.IntN(4)
	case "in-import":
		return 1 + rand.IntN(10)
	case "between-purges", "in-checkpoint", "in-vacuum", "in-backup", "before-rename":
		return 1 + rand.IntN(3)
	}
	return 1 + rand.IntN(80)
}
