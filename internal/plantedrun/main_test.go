package main

import "testing"

func TestOnlyATestThatFailedByItselfIsACatch(t *testing.T) {
	for _, c := range []struct{ name, output, want string }{
		{"a failure", "--- FAIL: TestA (0.00s)\n    a_test.go:7: wrong\nFAIL\n", "TestA"},
		{"a failure of a subtest", "--- FAIL: TestA (0.00s)\n    --- FAIL: TestA/b (0.00s)\n        a_test.go:7: wrong\n", "TestA/b"},
		{"a failure of a property", "--- FAIL: TestM (0.00s)\n    m_test.go:7: [rapid] failed after 3 tests: differ\n", "TestM"},
		{"a property that only fails sometimes", "--- FAIL: TestM (0.00s)\n    m_test.go:7: [rapid] flaky test, can not reproduce a failure\n", "TestM"},
		{"a panic", "--- FAIL: TestA (0.00s)\npanic: boom [recovered]\n\ngoroutine 1 [running]:\n", ""},
		{"a panic in a property", "--- FAIL: TestM (0.00s)\n    m_test.go:7: [rapid] panic after 3 tests: boom\n", ""},
		{"a failure and then a panic", "--- FAIL: TestA (0.00s)\n    a_test.go:7: wrong\n--- FAIL: TestB (0.00s)\npanic: boom\n", "TestA"},
		{"a time limit", "panic: test timed out after 1s\n\trunning tests:\n\t\tTestA (1s)\n", ""},
		{"a pass", "PASS\n", ""},
		{"a failed start", "no role \"x\"\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := failed([]byte(c.output)); got != c.want {
				t.Errorf("the test that failed: %q, want %q", got, c.want)
			}
		})
	}
}

func TestEveryPlantedFaultHasASuiteThatMustCatchIt(t *testing.T) {
	if err := inTable("../../queue/planted_faults.go"); err != nil {
		t.Error(err)
	}
	for _, p := range pairs {
		if _, ok := suiteOf(p); !ok {
			t.Errorf("there is no suite %q", p.suite)
		}
	}
}
