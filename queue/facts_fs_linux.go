package queue

import (
	"cmp"
	"fmt"

	"golang.org/x/sys/unix"
)

// fileSystem names the type of the file system that a directory is on, and says how much room this user has on it.
func fileSystem(dir string) (kind string, free int64, err error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return "", 0, err
	}
	number := uint32(st.Type) //nolint:unconvert // int64, int32 or uint32, by architecture
	network, err := networkFS(dir)
	kind = cmp.Or(network, map[uint32]string{
		unix.EXT4_SUPER_MAGIC:      "ext4",
		unix.XFS_SUPER_MAGIC:       "xfs",
		unix.BTRFS_SUPER_MAGIC:     "btrfs",
		unix.TMPFS_MAGIC:           "tmpfs",
		unix.RAMFS_MAGIC:           "ramfs",
		unix.OVERLAYFS_SUPER_MAGIC: "overlay",
		unix.F2FS_SUPER_MAGIC:      "f2fs",
		unix.MSDOS_SUPER_MAGIC:     "fat",
		unix.EXFAT_SUPER_MAGIC:     "exfat",
		unix.ECRYPTFS_SUPER_MAGIC:  "ecryptfs",
		0x2FC12FC1:                 "zfs",
		0xCA451A4E:                 "bcachefs",
	}[number], fmt.Sprintf("type %#x", number))
	return kind, int64(st.Bavail) * int64(st.Bsize), err //nolint:unconvert // by architecture
}
