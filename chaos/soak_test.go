//go:build linux

package chaos

import (
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/localqueue/localqueue/queue"
)

// soakRoles are the processes of the soak that live as long as it does, and those that are killed now and then.
var (
	steadyRoles = []string{roleProduce, roleProduce, roleConsume, roleConsume, roleWork, rolePurge, roleVacuum, roleBackup, roleLook}
	mortalRoles = []string{roleProduce, roleBatch, roleConsume, roleWork, roleWork, roleOpen, roleImport}
)

// TestSoak has everything at once for a while: handlers that fail and panic, leases that end, kills, retention and purges,
// vacuums, backups, and the command's reading verbs. Afterwards the accounts must be exact, and what the processes and the
// files took must have stayed within bounds. LOCALQUEUE_SOAK sets how long, LOCALQUEUE_BIN the command; make soak does both.
func TestSoak(t *testing.T) {
	c := newCrew(t, func(o *order) {
		switch o.Role {
		case roleProduce, roleBatch: // more than the consumers can do: the limit holds them up
			o.Pace, o.MaxPending = 3*time.Millisecond, 1500
		case roleVacuum, roleBackup:
			o.Pace = 20 * time.Millisecond
		}
	})
	c.purged = []string{bare, brief, typed}
	if err := makeQueue(c.dir); err != nil { // the verbs don't
		t.Fatal(err)
	}
	g := &gauges{crew: c}
	for _, role := range steadyRoles {
		g.steady = append(g.steady, c.start(role, ""))
	}
	for _, role := range mortalRoles {
		c.start(role, anyMoment)
	}
	verbs := startVerbs(t, c.dir)
	started, kills := time.Now(), 0
	over := time.After(soakTime(t))
	measure, kill := time.NewTicker(250*time.Millisecond), time.NewTicker(400*time.Millisecond)
	defer measure.Stop()
	defer kill.Stop()
	for on := true; on && !t.Failed(); {
		select {
		case <-over:
			on = false
		case <-measure.C:
			g.measure(time.Since(started))
		case <-kill.C:
			c.killOne()
		case m := <-c.gone:
			c.left(m, false)
			if m.killed != "" {
				kills++
				c.start(m.Role, anyMoment)
			}
		}
	}
	verbs.end()
	c.end()
	var a account
	c.verify(&a)
	g.check()
	t.Logf("\nsoak of %v, %d kills\n%s%s%s", time.Since(started).Round(time.Second), kills, &a, g, verbs)
}

func makeQueue(dir string) error {
	s, err := queue.Open(dir)
	if err != nil {
		return err
	}
	return s.Close()
}

func soakTime(t *testing.T) time.Duration {
	text := os.Getenv("LOCALQUEUE_SOAK")
	if text == "" {
		return 3 * time.Second
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("LOCALQUEUE_SOAK: %v", err)
	}
	return d
}

// killOne kills one of those that are there to be.
func (c *crew) killOne() {
	var mortal []*member
	for _, m := range c.running {
		if m.plan == anyMoment {
			mortal = append(mortal, m)
		}
	}
	if len(mortal) > 0 {
		_ = mortal[rand.IntN(len(mortal))].cmd.Process.Kill() // it may be dead already, and not heard of yet
	}
}
