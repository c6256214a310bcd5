// Package examples holds complete programs. This test builds each and compares what it prints.
package examples

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestExamplesBuildAndPrintWhatTheyShould(t *testing.T) {
	for name, want := range map[string]string{
		"typed": `3 deploys put
web v42 is out, attempt 1
api v7 is out, attempt 2
{App: Version:v1} failed: no app named (permanent)
`,
		"pipeline": `order 1 for a lamp is priced
order 2 for a chair is priced
order 3 for a desk is priced
invoice for order 1: 22.61
invoice for order 2: 53.55
invoice for order 3: 236.81
`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			program := filepath.Join(t.TempDir(), name)
			if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./"+name).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			dir := filepath.Join(t.TempDir(), "queue")
			for _, args := range [][]string{nil, {dir}} {
				cmd := exec.CommandContext(t.Context(), program, args...)
				var stderr bytes.Buffer
				cmd.Stderr = &stderr
				out, err := cmd.Output()
				if err != nil {
					t.Fatalf("%v\n%s", err, stderr.Bytes())
				}
				if diff := cmp.Diff(want, string(out)); diff != "" {
					t.Errorf("with arguments %q:\n%s", args, diff)
				}
				if stderr.Len() > 0 {
					t.Errorf("on stderr:\n%s", stderr.Bytes())
				}
			}
			if _, err := os.Stat(filepath.Join(dir, "localqueue.db")); err != nil {
				t.Errorf("the directory given wasn't used: %v", err)
			}
		})
	}
}
