//go:build !linux

package queue

import "golang.org/x/sys/unix"

// fileSystem names the type of the file system that a directory is on, and says how much room this user has on it.
func fileSystem(dir string) (kind string, free int64, err error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return "", 0, err
	}
	return unix.ByteSliceToString(st.Fstypename[:]), int64(st.Bavail) * int64(st.Bsize), nil
}
