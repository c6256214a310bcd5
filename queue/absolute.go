package queue

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// absolute is [filepath.Abs], but what it returns is the place that the system means by the name: there ".." after a link is
// the directory above the one that the link leads to. Names that don't exist yet may be anywhere in it.
func absolute(name string) (string, error) {
	parts := strings.Split(name, "/")
	at := "/"
	if !filepath.IsAbs(name) {
		wd, err := os.Getwd()
		if err != nil {
			return "", dirError(name, err)
		}
		at = wd
	}
	for _, part := range parts {
		if part != ".." {
			at = filepath.Join(at, part) // "" and "." change nothing
			continue
		}
		real, err := filepath.EvalSymlinks(at)
		switch {
		case err == nil && !isDir(real):
			return "", fmt.Errorf("%w: %s: %s is none", ErrNotDirectory, name, at)
		case err == nil:
			at = filepath.Dir(real)
		case errors.Is(err, os.ErrNotExist) && isLink(at):
			return "", fmt.Errorf("%w: %s: %s is a link to nothing", ErrNotDirectory, name, at)
		case errors.Is(err, os.ErrNotExist):
			at = filepath.Dir(at)
		default:
			return "", dirError(name, err)
		}
	}
	return at, nil
}

func isDir(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}
