package doctor

import (
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/localqueue/localqueue/queue"
)

// judgeDirectory: who else can get at the directory and its files, and what is odd about them.
func judgeDirectory(f *queue.Facts, found *findings) {
	dir := f.Directory
	if f.Link != "" {
		found.add(Note, DirLink, "the directory's name is a link to "+f.Link, "fine, as long as nobody points it elsewhere while the queue is open")
	}
	switch perm := dir.Mode.Perm(); {
	case perm&0o022 != 0:
		found.add(Problem, DirMode, fmt.Sprintf("the directory's mode is %04o: %s can remove and replace the files in it", perm, others(perm, 0o022)), "chmod 700 it")
	case perm&0o055 != 0:
		found.add(Note, DirMode, fmt.Sprintf("the directory's mode is %04o: %s can enter it", perm, others(perm, 0o055)), "chmod 700 it, unless that is what you want")
	}
	if dir.UID >= 0 && dir.UID != os.Geteuid() {
		found.add(Note, Owner, fmt.Sprintf("the directory belongs to user %d, and this is user %d", dir.UID, os.Geteuid()), "use the queue as its owner: files that another user makes may lock the owner out")
	}
	judgeFiles(f, found)
	if len(f.Leftovers) > 0 {
		found.add(Note, Leftover, "an interrupted backup or restore has left "+list(f.Leftovers), "remove it; the next backup to the same place does so too")
	}
}

func judgeFiles(f *queue.Facts, found *findings) {
	var odd, writable, readable, foreign []string
	owner := -1
	for _, file := range f.Files {
		if file.Name == "localqueue.db" {
			owner = file.UID
			if file.Links > 1 {
				found.add(Problem, HardLink, fmt.Sprintf("the database has %d names: whoever opens it by another one has another WAL, and the file breaks", file.Links), "remove the other name, while nothing uses it")
			}
		}
	}
	for _, file := range f.Files {
		mode := fmt.Sprintf("%s (%04o)", file.Name, file.Mode.Perm())
		switch perm := file.Mode.Perm(); {
		case file.Name == "localqueue.db" && file.Link != "":
			found.add(Problem, OddFile, "the database is a link to "+file.Link+": whoever opens it by that name has other side files",
				"move the file itself into the link's place, with its -wal if there is one, while nothing uses the queue")
			continue
		case file.Mode.Type() != kindOf(file.Name):
			odd = append(odd, fmt.Sprintf("%s is a %s", file.Name, kind(file.Mode)))
			continue // a link's own mode says nothing
		case perm&0o022 != 0:
			writable = append(writable, mode)
		case perm&0o044 != 0:
			readable = append(readable, mode)
		}
		if owner >= 0 && file.UID >= 0 && file.UID != owner {
			foreign = append(foreign, fmt.Sprintf("%s (user %d)", file.Name, file.UID))
		}
	}
	if len(odd) > 0 {
		found.add(Problem, OddFile, "what belongs to the queue isn't what it should be: "+list(odd), "move it away, while nothing uses the queue; what is needed is made anew, but for the database")
	}
	if len(writable) > 0 {
		found.add(Problem, FileMode, "others can change "+list(writable), "chmod 600 them")
	}
	if len(readable) > 0 {
		found.add(Note, FileMode, "others can read "+list(readable), "chmod 600 them, unless that is what you want")
	}
	if len(foreign) > 0 {
		found.add(Problem, MixedOwner, fmt.Sprintf("the database belongs to user %d, but others own %s", owner, list(foreign)), "chown them to the database's owner, and use the queue as that user")
	}
}

// kindOf is the type that a file of the queue should have: the doorbells are FIFOs, all else plain files.
func kindOf(name string) fs.FileMode {
	if number, ok := strings.CutPrefix(name, "localqueue.bell."); ok && number != "" && strings.Trim(number, "0123456789") == "" {
		return fs.ModeNamedPipe
	}
	return 0
}

func kind(mode fs.FileMode) string {
	switch mode.Type() {
	case 0:
		return "plain file"
	case fs.ModeSymlink:
		return "link"
	case fs.ModeDir:
		return "directory"
	case fs.ModeNamedPipe:
		return "FIFO"
	case fs.ModeSocket:
		return "socket"
	}
	return "device"
}

// others says whom the bits of a mode let in.
func others(perm, mask fs.FileMode) string {
	if perm&mask&0o007 != 0 {
		return "every user"
	}
	return "its group"
}
