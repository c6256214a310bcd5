package queue

// point names a moment inside the engine at which a crash is worth trying. Built with the tag planted, the process kills or
// stops itself there (planted_points.go); otherwise passing one costs nothing.
type point string

const (
	afterBegin     point = "after-begin"     // the write lock is held, nothing has changed yet
	betweenCalls   point = "between-calls"   // some statements of a transaction have run
	beforeCommit   point = "before-commit"   // all of them have
	afterCommit    point = "after-commit"    // it is in the file, and nobody has been told
	whileRinging   point = "while-ringing"   // the callers know, those who wait may not
	whileMigrating point = "while-migrating" // between two steps of the schema
	betweenPurges  point = "between-purges"  // some of the jobs are gone
	inCheckpoint   point = "in-checkpoint"   // a part of the WAL is copied
	inBackup       point = "in-backup"       // some pages are copied
	beforeRename   point = "before-rename"   // the copy is whole, and hasn't its name yet
	inImport       point = "in-import"       // a batch of jobs is stored, its mark not yet
	inVacuum       point = "in-vacuum"       // the file is rewritten, the WAL not yet emptied
)
