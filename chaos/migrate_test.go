//go:build linux

package chaos

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/localqueue/localqueue/queue"
)

const roleMigrate = "migrate" // first opens of new directories and of files of the Python original

func init() {
	roles[roleMigrate] = func(ctx context.Context, p *player) error { return p.together(ctx, 1, migrate) }
}

// oldJobs is how many jobs a file of the original has; their ids are 1, 2, 3, ...
const oldJobs = 5

// isOld tells whether the directory of that number begins as one of the original's.
func isOld(number int64) bool { return number%2 == 1 }

func oldToken(name string, id int64) string { return fmt.Sprintf("old-%s-%d", name, id) }

// migrate opens a directory that takes its name from the time, so that several processes open the same new one at once, and
// those that come after one that was killed find what it has left. Each puts the one job of a key there, and one of its own.
func migrate(ctx context.Context, p *player) error {
	number := time.Now().UnixMilli() / 150
	name := fmt.Sprintf("m%d", number)
	dir := filepath.Join(p.Dir, name)
	if isOld(number) {
		if err := p.makeOld(dir, name); err != nil {
			return err
		}
	}
	visit := *p
	var err error
	if visit.store, err = p.open(dir); err != nil {
		return err
	}
	for _, key := range []string{"", "first"} {
		j := job{Token: p.token(), Key: key}
		var opts []queue.PutOption
		if key != "" {
			opts = append(opts, queue.JobID(key))
		}
		err = errors.Join(err, p.tell(entry{Op: opPut, Dir: name, Queue: bare, Jobs: []job{j}}, func() ([]job, error) {
			res, err := visit.queue(bare).Put(ctx, p.payload(j.Token), opts...)
			return []job{{ID: res.ID, Dup: res.Duplicate}}, err
		}))
	}
	return errors.Join(err, visit.store.Close())
}

// makeOld puts a directory of the original there in one step, unless there is one.
func (p *player) makeOld(dir, name string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	draft := filepath.Join(p.Dir, fmt.Sprintf("draft-%s-%s", name, p.Name))
	if err := os.Mkdir(draft, 0o700); err != nil {
		return err
	}
	if err := writeOld(filepath.Join(draft, "localqueue.db"), name); err != nil {
		return err
	}
	if err := os.Rename(draft, dir); err != nil { // another process was faster
		return os.RemoveAll(draft)
	}
	return nil
}

func writeOld(path, name string) (err error) {
	schema, err := os.ReadFile(filepath.Join("..", "sql", "sqlite", "testdata", "original", "1.0.0.sql"))
	if err != nil {
		return err
	}
	db, err := sql.Open("sqlite3", "file:"+path+"?_synchronous=OFF")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if _, err := db.Exec(string(schema)); err != nil {
		return err
	}
	for id := int64(1); id <= oldJobs; id++ {
		_, err := db.Exec(`INSERT INTO messages (queue, payload, status, max_attempts, available_at, created_at, updated_at)
			VALUES (?, CAST(? AS BLOB), 0, 4, 0, 0, 0)`, bare, oldToken(name, id))
		if err != nil {
			return err
		}
	}
	return nil
}

// oldCalls are the puts that a file of the original stands for.
func oldCalls(name string) (calls []*call) {
	for id := int64(1); id <= oldJobs; id++ {
		j := job{ID: id, Token: oldToken(name, id)}
		calls = append(calls, &call{Proc: "original", Answered: true, entry: entry{N: id, Op: opPut, Dir: name, Queue: bare, Jobs: []job{j}}})
	}
	return calls
}

func numberOf(name string) int64 {
	n, err := strconv.ParseInt(strings.TrimPrefix(name, "m"), 10, 64)
	if err != nil {
		panic(err) // the names are ours
	}
	return n
}
