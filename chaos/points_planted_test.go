//go:build linux && planted

package chaos

import "github.com/localqueue/localqueue/queue"

// killPoints are the named points of the engine.
func killPoints() (names []string) {
	for _, p := range queue.Points {
		names = append(names, string(p))
	}
	return names
}
