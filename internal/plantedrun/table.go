package main

// suite is a group of tests in one package's test binary.
type suite struct {
	name string
	pkg  string // the package, as a directory below the module
	run  string // -test.run
	args []string
	env  []string
}

// suites are run without a fault first, and must pass then.
var suites = []suite{
	{name: "conformance", pkg: "queue", run: "^TestConformance$/^one_Store$"},
	{name: "model", pkg: "queue", run: "^TestModel", args: []string{"-rapid.nofailfile", "-rapid.shrinktime=1s"}},
	{name: "wakes", pkg: "queue", run: "^TestConformance$/^several_Stores$/OfAnotherStore$"},
	{name: "group", pkg: "queue", run: "^Test(CallersShare|AFullDiskFails|AJobClaimedForACaller|HeartbeatsAndSettlesGo)"},
	{name: "wal", pkg: "queue", run: "^TestTheWALStartsAnew"},
	{name: "bench", pkg: "bench", run: "^TestSmoke"},
	{name: "line", pkg: "queue", run: "^TestOneThatIsStoppedHoldsUpNobody"},
	{name: "history", pkg: "queue", run: "^TestHistory", env: []string{"LOCALQUEUE_HISTORY_TIME=1500ms"}},
}

// pair demands that a suite fails on a fault.
type pair struct {
	suite string
	fault string
	run   string // narrower than the suite's: the tests of the rules that the fault breaks; "" is the whole suite
}

var pairs = []pair{
	{"conformance", "answer-before-commit", rules("Rule0")},
	{"conformance", "ack-without-receipt", rules("Rule20")},
	{"conformance", "reclaim-uncounted", rules("Rule1[67]")},
	{"conformance", "clock-before-lock", rules("Rule13")},
	{"conformance", "swallowed-error", rules("Rule2[01]")},
	{"conformance", "counter-off-by-one", rules("Rule2")},
	{"conformance", "reclaim-without-state", rules("Rule16")},
	{"conformance", "silent-doorbell", rules("(Rule15_GetWakesOnAPut|Rule10_AWaitingPutWakesOnAnAck)$")},

	{"model", "answer-before-commit", ""},
	{"model", "ack-without-receipt", ""},
	{"model", "reclaim-uncounted", ""},
	{"model", "reclaim-without-state", ""},
	{"model", "swallowed-error", ""},
	{"model", "counter-off-by-one", ""},

	{"wakes", "deaf-processes", "^TestConformance$/^several_Stores$/^Rule(15_GetWakesOnAPut|10_AWaitingPutWakesOnAnAck)OfAnotherStore$"},

	{"group", "batch-error-swallowed", "^TestAFullDiskFails"},
	{"group", "left-claim-kept", "^TestAJobClaimedForACaller"},
	{"group", "first-come", "^TestHeartbeatsAndSettlesGo"},
	{"group", "swallowed-error", "^TestCallersShare"},

	{"wal", "no-checkpoint", ""},

	{"bench", "claimed-twice", "^TestSmokeContention$"},
	{"bench", "put-lost", "^TestSmokeContention$"},
	{"bench", "silent-doorbell", "^TestSmokeWakeup$"},

	{"line", "endless-turn", ""},
	{"line", "no-passing-by", ""},

	{"history", "answer-before-commit", ""},
	{"history", "ack-without-receipt", ""},
	{"history", "reclaim-uncounted", ""},
	{"history", "reclaim-without-state", ""},
	{"history", "clock-before-lock", ""},
	{"history", "swallowed-error", ""},
	{"history", "counter-off-by-one", ""},
}

// rules narrows the conformance suite to the cases whose names begin so.
func rules(prefix string) string { return "^TestConformance$/^one_Store$/^" + prefix }
