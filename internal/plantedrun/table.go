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
	{name: "steps", pkg: "queue", run: "^TestConformance$/^stepping_clock$/^Rule1[36]"},
	{name: "wakes", pkg: "queue", run: "^TestConformance$/^several_Stores$/OfAnotherStore$"},
	{name: "group", pkg: "queue", run: "^Test(CallersShare|AFullDiskFails|AJobClaimedForACaller|HeartbeatsAndSettlesGo)"},
	{name: "wal", pkg: "queue", run: "^TestTheWALStartsAnew"},
	{name: "backup", pkg: "queue", run: "^TestA(BackupUnderLoad|KilledBackup|KilledRestore)"},
	{name: "iofault", pkg: "chaos/iofault", run: "^TestManyCalls/many_callers|^TestAPutAfterAFailedSync|^TestEachOperation/shard/^put_that_spills"},
	{name: "bench", pkg: "bench", run: "^TestSmoke"},
	{name: "doctor", pkg: "doctor", run: "^TestEachFinding.*/^a_new_queue$"},
	{name: "oldfiles", pkg: "queue", run: "^Test(EveryJobOfAnOldFile|FourProcessesOpen|AnOldFileIsWorked)"},
	{name: "import", pkg: "archive", run: "^TestAKilledImport"},
	{name: "line", pkg: "queue", run: "^TestOneThatIsStoppedHoldsUpNobody"},
	{name: "chaos", pkg: "chaos", run: "^TestKillCampaign$"},
	{name: "history", pkg: "queue", run: "^TestHistory", env: []string{"LOCALQUEUE_HISTORY_TIME=1500ms"}},
	{name: "powercut", pkg: "chaos/powercut", run: "^TestAPowerCutTakesOnly", env: []string{"LOCALQUEUE_POWERCUT_IMAGES=10"}},
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

	{"conformance", "remembered-time", rules("Rule43")},

	{"steps", "remembered-time", ""},

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

	{"wal", "no-checkpoint", "^TestTheWALStartsAnewWhile"},
	{"wal", "readers-first", "^TestTheWALStartsAnewUnder"},

	{"backup", "backup-without-snapshot", "^TestABackupUnderLoad"},
	{"backup", "backup-by-steps", "^TestABackupUnderLoad"},

	{"iofault", "batch-error-swallowed", "^TestManyCalls/many_callers"},
	{"iofault", "swallowed-error", "^TestEachOperation/shard/^put_that_spills"},
	{"iofault", "answer-before-commit", "^TestManyCalls/many_callers"},
	{"iofault", "unsynced", "^TestAPutAfterAFailedSync"},

	{"bench", "claimed-twice", "^TestSmokeContention$"},
	{"bench", "put-lost", "^TestSmokeContention$"},
	{"bench", "silent-doorbell", "^TestSmokeWakeup$"},

	{"doctor", "unsynced", ""},

	{"oldfiles", "ack-without-receipt", ""},
	{"oldfiles", "reclaim-uncounted", ""},
	{"oldfiles", "swallowed-error", ""},
	{"oldfiles", "counter-off-by-one", ""},

	{"import", "markless-import", ""},

	{"line", "endless-turn", ""},
	{"line", "no-passing-by", ""},

	{"chaos", "answer-before-commit", ""},
	{"chaos", "ack-without-receipt", ""},
	{"chaos", "reclaim-uncounted", ""},
	{"chaos", "reclaim-without-state", ""},
	{"chaos", "counter-off-by-one", ""},
	{"chaos", "batch-error-swallowed", ""},

	{"history", "answer-before-commit", ""},
	{"history", "ack-without-receipt", ""},
	{"history", "reclaim-uncounted", ""},
	{"history", "reclaim-without-state", ""},
	{"history", "clock-before-lock", ""},
	{"history", "swallowed-error", ""},
	{"history", "counter-off-by-one", ""},

	{"powercut", "unsynced", "^TestAPowerCutTakesOnly/^full$"},
	{"powercut", "unsynced", "^TestAPowerCutTakesOnly/^balanced$"},
	{"powercut", "answer-before-commit", ""},
}

// rules narrows the conformance suite to the cases whose names begin so.
func rules(prefix string) string { return "^TestConformance$/^one_Store$/^" + prefix }
