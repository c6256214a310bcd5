// Package preload puts a small C library between SQLite and libc in a child process of a test. The library writes down what
// SQLite does to the files of one directory, and fails calls on demand.
//
// SQLite inside a Go program calls libc by name, so that LD_PRELOAD reaches it: opens, reads, writes, truncations, syncs,
// unlinks and mappings. Go's own file calls (os.MkdirAll, the lock file, the doorbell) are system calls of their own, which
// nobody sees here.
//
// # Use
//
// The parent builds the library and starts a child, most often its own test binary again:
//
//	lib := preload.Build(t)
//	control := preload.NewControl(t)              // to fail calls
//	env := lib.Env(preload.Options{
//		Dir:     dir,                         // the files below it are watched; it must exist
//		Log:     filepath.Join(other, "log"), // to record; outside Dir. "": no record
//		Control: control,                     // nil: no failing
//	})
//	cmd := exec.Command(os.Args[0], "-test.run=^$")
//	cmd.Env = append(os.Environ(), append(env, "MY_CHILD=1")...)
//
// # Recording
//
// ReadLog returns the records in the order of their effects, among all threads and processes that share the log. The child
// adds its own, such as "the answer to put 17 was given":
//
//	marks, err := preload.OpenMarks()
//	err = marks.Mark([]byte("answered 17"))
//
// A mark stands behind whatever was done before Mark was called, and before whatever is done after it returned.
//
// # Failing
//
// A Fault is the Nth call of some kinds on some files. Calls count from Arm to Disarm. Parent and child may both arm and read
// the counts; the child most exactly around one operation:
//
//	control, err := preload.OpenControl()         // in the child
//	control.Arm(preload.Fault{Calls: preload.Write | preload.Sync, Files: preload.AnyFile, Nth: k, Errno: syscall.EIO})
//	_, err = q.Put(ctx, payload)
//	control.Disarm()
//	if control.Fired() == 0 { /* the operation has fewer than k such calls: done; control.Seen() says how many */ }
//
// Nth 0 fails nothing and counts. Sticky fails every later one too. Torn lets half of the Nth write through and fails the
// attempt to write the rest.
package preload
