//go:build !linux

package queue

import "golang.org/x/sys/unix"

// networkFS names the network file system that a directory is on, or "".
func networkFS(dir string) (string, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return "", err
	}
	name := unix.ByteSliceToString(st.Fstypename[:])
	switch name {
	case "nfs", "smbfs", "afpfs", "webdav", "osxfuse", "macfuse", "fusefs", "ftp":
		return name, nil
	}
	return "", nil
}
