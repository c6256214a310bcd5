package queue

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// RestoreOptions say how a restore goes. The zero value restores to a directory without a queue.
type RestoreOptions struct {
	// Replace puts the restored queue in the place of the one that is there. That one is renamed, not removed.
	Replace bool
	// Progress is told how many of the file's pages are copied, as in BackupOptions.
	Progress func(done, total int)
}

// RestoreInfo describes a finished restore.
type RestoreInfo struct {
	Dir      string // the queue's directory, absolute
	Bytes    int64  // the size of the file in it
	Replaced string // where the directory is that was there before; "" if there was none, or no queue in it
}

// Restore makes the queue in dir from a backup: the directory that [Store.Backup] has made, or that of any queue which is closed.
// The backup is only read. dir may be missing, when its parent must exist, or a directory without a queue in it. What is made
// is checked in full, as Check does, and synced to the disk before it is there at all; after an error nothing has changed. Of
// the options those of Open that concern the directory count.
//
// With Replace the new directory changes places with the old one in one step, so that whoever opens dir, also after a crash,
// finds a whole queue: the old or the new one. The old directory, with all that is in it, is dir.replaced-TIME from then on;
// the new one has its owner and its mode. Nobody may have the queue open: a Store in any process makes Restore return ErrBusy at
// once, and so does, on Linux, another program (an sqlite3 shell, goose) that has read or written in it and has it open still.
// Elsewhere such a program isn't noticed, and would go on in the old directory. Who opens the queue meanwhile waits for up to
// its busy timeout.
//
// Errors: ErrExists (there is a queue, and no Replace), ErrReplaced (there is the WAL or the journal of a queue without its
// database), ErrBusy, ErrNoQueue, ErrForeignFile, ErrNewerSchema, ErrCorrupt (the backup is damaged), ErrUnclosed (it has a WAL),
// ErrInvalid (one directory is inside the other, or dir is inside that of another queue), ErrNotDirectory, ErrNetworkFS,
// ErrReadOnly, ErrDiskFull, ErrIO, [errors.ErrUnsupported] (dir can't be replaced: it is a mount point, or the file system
// can't exchange directories), or the context's.
func Restore(ctx context.Context, backup, dir string, opts RestoreOptions, with ...Option) (RestoreInfo, error) {
	cfg, err := configure(with)
	if err != nil {
		return RestoreInfo{}, err
	}
	info, err := restore(ctx, backup, dir, opts, &cfg)
	if err != nil {
		return RestoreInfo{}, fmt.Errorf("restore of %s to %s: %w", backup, dir, err)
	}
	return info, nil
}

func restore(ctx context.Context, backup, dir string, opts RestoreOptions, cfg *config) (RestoreInfo, error) {
	var info RestoreInfo
	from, err := openBackup(ctx, backup)
	if err != nil {
		return info, err
	}
	defer func() { _ = from.db.Close() }()
	to, err := restorePlace(dir, opts.Replace, cfg)
	if err != nil {
		return info, err
	}
	if err := apart(from.dir, to); err != nil {
		return info, err
	}
	if to.exists {
		alone, err := takeAlone(to.dir)
		if err != nil {
			return info, err
		}
		defer func() {
			if info.Dir == "" {
				alone.remove()
			} else {
				alone.release()
			}
		}()
		if err := to.look(opts.Replace); err != nil { // again, now that it stays as it is
			return info, err
		}
		if err := to.unused(); err != nil {
			return info, err
		}
	}
	d, err := newDraft(to.draftPlace())
	if err != nil {
		return info, err
	}
	defer d.discard()
	err = copyDatabase(ctx, from.db, d.path(), opts.Progress)
	if err == nil {
		err = from.unchanged()
	}
	if err == nil {
		err = d.verify(ctx, cfg)
	}
	if err == nil && to.queue {
		err = d.likeOld(to.dir)
	}
	if err == nil && to.empty {
		err = d.likeOldFile(to.dir)
	}
	if err == nil {
		err = d.finish()
	}
	if err == nil {
		err = ctx.Err()
	}
	var bytes int64
	if err == nil {
		bytes, err = sizeOf(d.path())
	}
	if err == nil {
		err = to.unused() // again: the copy may have taken a while
	}
	if err == nil {
		info.Replaced, err = to.take(d, cfg.clock())
	}
	if err != nil {
		return RestoreInfo{}, endedBy(ctx, d.explain(storeError(d.path(), err)))
	}
	info.Dir, info.Bytes = to.dir, bytes
	return info, nil
}

// backupFile is a closed database that is only read.
type backupFile struct {
	dir  string
	path string
	db   *sql.DB
	was  os.FileInfo
}

// openBackup opens a backup and looks what it is. It isn't locked: there may be no way to lock it without changing it, on a
// medium that is read-only, say. Instead it must not have changed in the end.
func openBackup(ctx context.Context, backup string) (*backupFile, error) {
	path, err := findFile(backup, &config{mustExist: true, networkFS: true})
	if err != nil {
		return nil, err
	}
	b := &backupFile{path: path}
	if b.dir, err = existingDir(filepath.Dir(path)); err != nil {
		return nil, err
	}
	if b.was, err = os.Stat(path); err != nil {
		return nil, dirError(backup, err)
	}
	if !b.was.Mode().IsRegular() {
		return nil, notAFile(path)
	}
	if err := b.unchanged(); err != nil {
		return nil, err
	}
	// immutable: no lock, and no WAL: SQLite would make one beside it.
	if b.db, err = sql.Open("sqlite3", "file:"+escapePath(path)+"?mode=ro&immutable=1&_mutex=no"); err != nil {
		return nil, err
	}
	b.db.SetMaxOpenConns(1)
	f, err := identify(ctx, b.db, path)
	if err == nil && f.empty {
		err = fmt.Errorf("%w in %s: the database is empty", ErrNoQueue, backup)
	}
	if err != nil {
		return nil, errors.Join(err, b.db.Close())
	}
	return b, nil
}

// unchanged tells whether what is in the file is all there is: nothing was written to it since it was opened, nor beside it.
func (b *backupFile) unchanged() error {
	for _, suffix := range []string{"-wal", "-journal"} {
		if st, err := os.Stat(b.path + suffix); err == nil && st.Size() > 0 {
			return fmt.Errorf("%w: there is more in %s: the queue is open, then take a backup of it instead, or a crash left it so, then open and close it once", ErrUnclosed, b.path+suffix)
		}
	}
	now, err := os.Stat(b.path)
	if err != nil {
		return dirError(b.path, err)
	}
	if !os.SameFile(b.was, now) || b.was.Size() != now.Size() || !b.was.ModTime().Equal(now.ModTime()) {
		return fmt.Errorf("%w: %s was written while it was read; take a backup of the queue instead", ErrUnclosed, b.path)
	}
	return nil
}

// place is where a restored queue goes.
type place struct {
	dir    string // absolute, its links resolved
	exists bool
	queue  bool // there is one, to be replaced
	empty  bool // there is an empty file, which is no queue
}

func restorePlace(dir string, replace bool, cfg *config) (*place, error) {
	must := *cfg
	must.mustExist = true
	if _, err := findFile(dir, &must); err != nil && !errors.Is(err, ErrNoQueue) {
		return nil, err
	}
	abs, err := absolute(dir)
	if err != nil {
		return nil, err
	}
	p := &place{}
	if _, err := os.Stat(abs); errors.Is(err, os.ErrNotExist) {
		parent, err := existingDir(filepath.Dir(abs))
		if err != nil {
			return nil, err
		}
		if err := outsideQueues(parent); err != nil {
			return nil, err
		}
		p.dir = filepath.Join(parent, filepath.Base(abs))
		return p, refuseNetwork(parent, cfg)
	}
	if p.dir, err = existingDir(abs); err != nil {
		return nil, err
	}
	p.exists = true
	if err := outsideQueues(filepath.Dir(p.dir)); err != nil {
		return nil, err
	}
	if err := refuseNetwork(p.dir, cfg); err != nil {
		return nil, err
	}
	return p, p.look(replace)
}

// look tells whether a queue may be put there.
func (p *place) look(replace bool) error {
	path := filepath.Join(p.dir, dbFile)
	if err := refuseLost(path); err != nil {
		return err
	}
	db, err := os.Lstat(path)
	journal, _ := sizeOf(path + "-journal") // SQLite would take it for a part of the new database
	if err != nil && journal > 0 {
		return fmt.Errorf("%w: %s is missing, but its journal is there: put the database back; if it is lost, move %s away", ErrReplaced, path, path+"-journal")
	}
	p.empty = err == nil && db.Mode().IsRegular() && db.Size() == 0 && journal == 0
	p.queue = err == nil && !p.empty
	if p.queue && !replace {
		return fmt.Errorf("%w: there is a queue in %s; name another directory, or have it replaced", ErrExists, p.dir)
	}
	if p.queue {
		return p.mayMove()
	}
	return nil
}

// unused refuses a queue that another program than ours has open: it would go on in the old directory.
func (p *place) unused() error {
	if !p.queue {
		return nil
	}
	if pids := lockHolders(filepath.Join(p.dir, dbFile)+"-shm", "READ", walOpenLock, walOpenLock); len(pids) > 0 {
		all := make([]Opener, len(pids))
		for i, pid := range pids {
			all[i].PID = pid
		}
		return openIn(p.dir, all)
	}
	return nil
}

// mayMove refuses a mount point before any work is done.
func (p *place) mayMove() error {
	dir, err := device(p.dir)
	if err != nil {
		return dirError(p.dir, err)
	}
	parent, err := device(filepath.Dir(p.dir))
	if err != nil {
		return dirError(p.dir, err)
	}
	if dir != parent {
		return mountPoint(p.dir)
	}
	return nil
}

// apart refuses a backup and a place that are one inside the other.
func apart(backup string, p *place) error {
	outside := p.dir
	if !p.exists {
		outside = filepath.Dir(p.dir)
	}
	if inside, err := isWithin(outside, backup); err != nil {
		return err
	} else if inside {
		return invalid("the directory to restore to is that of the backup, or inside it")
	}
	if !p.queue {
		return nil
	}
	if inside, err := isWithin(backup, p.dir); err != nil {
		return err
	} else if inside {
		return invalid("the backup is inside the directory to be replaced; move it out first")
	}
	return nil
}

// draftPlace is where the copy is made: where it can be renamed from.
func (p *place) draftPlace() (parent, base string) {
	if p.exists && !p.queue {
		return p.dir, "localqueue"
	}
	return filepath.Dir(p.dir), filepath.Base(p.dir)
}

// take puts the finished copy there, and returns the name of the directory it has replaced.
func (p *place) take(d *draft, now time.Time) (replaced string, err error) {
	switch {
	case !p.exists:
		return "", d.become(p.dir)
	case p.empty:
		return "", d.fillEmpty(p.dir)
	case !p.queue:
		return "", d.fill(p.dir)
	}
	for {
		aside := p.dir + ".replaced-" + now.UTC().Format("20060102T150405.000Z")
		if err = d.replace(p.dir, aside); err == nil || !errors.Is(err, ErrExists) {
			return aside, err
		}
		now = now.Add(time.Millisecond)
	}
}
