//go:build linux && !planted

package chaos

// killPoints: only a planted build has them.
func killPoints() []string { return nil }
