package queue

import "golang.org/x/sys/unix"

// networkFS names the network file system that a directory is on, or "". SQLite's locks and shared memory don't work
// across machines (sqlite.org/wal.html, "all processes must be on the same host"). The numbers are those of statfs(2).
func networkFS(dir string) (string, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return "", err
	}
	return map[uint32]string{
		unix.NFS_SUPER_MAGIC:   "nfs",
		unix.CIFS_SUPER_MAGIC:  "cifs",
		unix.SMB2_SUPER_MAGIC:  "smb2",
		unix.SMB_SUPER_MAGIC:   "smb",
		unix.V9FS_MAGIC:        "9p",
		unix.CEPH_SUPER_MAGIC:  "ceph",
		unix.AFS_SUPER_MAGIC:   "afs",
		unix.AFS_FS_MAGIC:      "afs",
		unix.CODA_SUPER_MAGIC:  "coda",
		unix.NCP_SUPER_MAGIC:   "ncp",
		unix.FUSE_SUPER_MAGIC:  "fuse",
		unix.OCFS2_SUPER_MAGIC: "ocfs2",
		0x0BD00BD0:             "lustre",
		0x01161970:             "gfs2",
		0x47504653:             "gpfs",
	}[uint32(st.Type)], nil //nolint:unconvert // Type is int64, int32 or uint32, by architecture
}
