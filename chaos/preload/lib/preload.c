// Stands between SQLite and libc: writes down what it does to the files of one directory, and fails calls on demand.
// The Go package around it says how to use it (doc.go), and reads what is written here (log.go, control.go).
//
// SQLite inside a Go program calls these by name, so that a preloaded library sees them. Go's own file calls go straight
// to the kernel and don't pass here.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

// What a call does: the kinds of a fault, as bits (control.go).
enum { CALL_OPEN = 1, CALL_READ = 2, CALL_WRITE = 4, CALL_TRUNCATE = 8, CALL_SYNC = 16, CALL_UNLINK = 32, CALL_MAP = 64 };

// Which file it is, by its name, as bits (control.go).
enum { FILE_DB = 1, FILE_WAL = 2, FILE_SHM = 4, FILE_JOURNAL = 8, FILE_DIRECTORY = 16, FILE_OTHER = 32 };

// What a record tells (log.go).
enum { DID_OPEN = 1, DID_CREATE, DID_WRITE, DID_TRUNCATE, DID_SYNC, DID_UNLINK };

// control is a file that the test maps too.
struct control {
	uint32_t armed, calls, files, error, sticky, torn;
	uint64_t nth, seen, fired;
};

// header begins a record; the name and the data follow. Integers are of this machine.
struct header {
	uint32_t size; // of all of it
	uint16_t kind, name;
	uint64_t inode;
	int64_t offset;
};

struct file {
	char *name; // relative to the directory; NULL: not ours
	int which;
	uint64_t inode;
};

#define MAX_FD 65536

static struct file files[MAX_FD]; // by descriptor
static const char *directory;     // without a slash at its end
static struct control *control;
static int log_fd = -1;
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

#define REAL(type, name, ...) \
	({ static void *found; if (!found) found = real(#name); (type(*)(__VA_ARGS__))found; })

static void *real(const char *name) {
	void *found = dlsym(RTLD_NEXT, name);
	if (!found) {
		fprintf(stderr, "preload: no %s in libc\n", name);
		abort();
	}
	return found;
}

static void must(int ok, const char *what) {
	if (ok) return;
	perror(what);
	abort();
}

__attribute__((constructor)) static void start(void) {
	const char *log = getenv("LOCALQUEUE_PRELOAD_LOG"), *ctl = getenv("LOCALQUEUE_PRELOAD_CONTROL");
	if (log) {
		log_fd = REAL(int, open, const char *, int, ...)(log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
		must(log_fd >= 0, "preload: log");
	}
	if (ctl) {
		int fd = REAL(int, open, const char *, int, ...)(ctl, O_RDWR | O_CLOEXEC);
		must(fd >= 0, "preload: control");
		control = REAL(void *, mmap, void *, size_t, int, int, int, off_t)(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		must(control != MAP_FAILED, "preload: control");
		REAL(int, close, int)(fd);
	}
	directory = getenv("LOCALQUEUE_PRELOAD_DIR"); // last: until now no call was watched
}

// inside returns the path's part below the directory, "." for the directory itself, and NULL for what is elsewhere.
static const char *inside(const char *path) {
	size_t n = directory ? strlen(directory) : 0;
	if (!n || !path || strncmp(path, directory, n)) return NULL;
	if (!path[n]) return ".";
	return path[n] == '/' && path[n + 1] ? path + n + 1 : NULL;
}

static int ends(const char *name, const char *with) {
	size_t n = strlen(name), m = strlen(with);
	return n >= m && !strcmp(name + n - m, with);
}

static int which(const char *name, mode_t mode) {
	if (S_ISDIR(mode)) return FILE_DIRECTORY;
	if (ends(name, "-wal")) return FILE_WAL;
	if (ends(name, "-shm")) return FILE_SHM;
	if (ends(name, "-journal")) return FILE_JOURNAL;
	return ends(name, ".db") ? FILE_DB : FILE_OTHER;
}

static struct file *ours(int fd) {
	return directory && fd >= 0 && fd < MAX_FD && files[fd].name ? &files[fd] : NULL;
}

// Between lock and unlock a call and its record are one, among all threads and all processes with the same log: the order
// of the records is the order of the effects.
static void lock(void) {
	pthread_mutex_lock(&turn);
	while (log_fd >= 0 && flock(log_fd, LOCK_EX) && errno == EINTR) {
	}
}

static void unlock(void) {
	int e = errno;
	if (log_fd >= 0) flock(log_fd, LOCK_UN);
	pthread_mutex_unlock(&turn);
	errno = e;
}

static void record(int kind, const char *name, uint64_t inode, int64_t offset, const void *data, size_t n) {
	if (log_fd < 0) return;
	int e = errno;
	struct header h = {.kind = kind, .name = strlen(name), .inode = inode, .offset = offset};
	h.size = sizeof h + h.name + n;
	struct iovec parts[] = {{&h, sizeof h}, {(void *)name, h.name}, {(void *)data, n}};
	must(writev(log_fd, parts, 3) == (ssize_t)h.size, "preload: log");
	errno = e;
}

// The verdict on a call: let it through, fail it, or let half of it through.
enum { PASS, FAIL, HALF };

static int verdict(int call, int file) {
	if (!control || !__atomic_load_n(&control->armed, __ATOMIC_ACQUIRE)) return PASS;
	if (!(control->calls & call) || !(control->files & file)) return PASS;
	uint64_t seen = __atomic_add_fetch(&control->seen, 1, __ATOMIC_ACQ_REL), nth = control->nth;
	int verdict = PASS;
	if (!nth || seen < nth) return PASS;
	if (seen == nth) verdict = control->torn && call == CALL_WRITE ? HALF : FAIL;
	else if (control->sticky || (control->torn && call == CALL_WRITE && seen == nth + 1)) verdict = FAIL;
	if (verdict != PASS) __atomic_add_fetch(&control->fired, 1, __ATOMIC_ACQ_REL);
	if (verdict == FAIL) errno = control->error;
	return verdict;
}

static int open_file(const char *path, int flags, mode_t mode) {
	const char *name = inside(path);
	if (!name) return REAL(int, open, const char *, int, ...)(path, flags, mode);
	struct stat st;
	lock();
	int existed = !lstat(path, &st), fd = -1;
	if (verdict(CALL_OPEN, which(name, existed ? st.st_mode : 0)) == PASS)
		fd = REAL(int, open, const char *, int, ...)(path, flags, mode);
	if (fd >= 0 && fd < MAX_FD && !fstat(fd, &st)) {
		files[fd] = (struct file){strdup(name), which(name, st.st_mode), st.st_ino};
		record(existed ? DID_OPEN : DID_CREATE, name, st.st_ino, 0, NULL, 0);
	}
	unlock();
	return fd;
}

int open64(const char *path, int flags, ...) {
	va_list rest;
	va_start(rest, flags);
	mode_t mode = va_arg(rest, mode_t);
	va_end(rest);
	return open_file(path, flags, mode);
}

int close(int fd) {
	if (ours(fd)) {
		lock();
		free(files[fd].name);
		files[fd].name = NULL;
		unlock();
	}
	return REAL(int, close, int)(fd);
}

ssize_t pread64(int fd, void *buf, size_t n, off64_t offset) {
	struct file *f = ours(fd);
	if (f && verdict(CALL_READ, f->which) != PASS) return -1;
	return REAL(ssize_t, pread64, int, void *, size_t, off64_t)(fd, buf, n, offset);
}

ssize_t pwrite64(int fd, const void *buf, size_t n, off64_t offset) {
	struct file *f = ours(fd);
	if (!f) return REAL(ssize_t, pwrite64, int, const void *, size_t, off64_t)(fd, buf, n, offset);
	ssize_t wrote = -1;
	lock();
	int v = verdict(CALL_WRITE, f->which);
	if (v != FAIL) wrote = REAL(ssize_t, pwrite64, int, const void *, size_t, off64_t)(fd, buf, v == HALF ? n / 2 : n, offset);
	if (wrote > 0) record(DID_WRITE, f->name, f->inode, offset, buf, wrote);
	unlock();
	return wrote;
}

int ftruncate64(int fd, off64_t size) {
	struct file *f = ours(fd);
	if (!f) return REAL(int, ftruncate64, int, off64_t)(fd, size);
	int r = -1;
	lock();
	if (verdict(CALL_TRUNCATE, f->which) == PASS) r = REAL(int, ftruncate64, int, off64_t)(fd, size);
	if (!r) record(DID_TRUNCATE, f->name, f->inode, size, NULL, 0);
	unlock();
	return r;
}

int fsync(int fd) {
	struct file *f = ours(fd);
	if (!f) return REAL(int, fsync, int)(fd);
	int r = -1;
	lock();
	if (verdict(CALL_SYNC, f->which) == PASS) r = REAL(int, fsync, int)(fd);
	if (!r) record(DID_SYNC, f->name, f->inode, 0, NULL, 0);
	unlock();
	return r;
}

int unlink(const char *path) {
	const char *name = inside(path);
	if (!name) return REAL(int, unlink, const char *)(path);
	int r = -1;
	lock();
	if (verdict(CALL_UNLINK, which(name, 0)) == PASS) r = REAL(int, unlink, const char *)(path);
	if (!r) record(DID_UNLINK, name, 0, 0, NULL, 0);
	unlock();
	return r;
}

void *mmap64(void *at, size_t n, int prot, int flags, int fd, off64_t offset) {
	struct file *f = ours(fd);
	if (f && verdict(CALL_MAP, f->which) != PASS) return MAP_FAILED;
	return REAL(void *, mmap64, void *, size_t, int, int, int, off64_t)(at, n, prot, flags, fd, offset);
}

// The same calls by the names that SQLite uses where it is built with other flags.
int open(const char *path, int flags, ...) {
	va_list rest;
	va_start(rest, flags);
	mode_t mode = va_arg(rest, mode_t);
	va_end(rest);
	return open_file(path, flags, mode);
}

ssize_t pread(int fd, void *buf, size_t n, off_t offset) { return pread64(fd, buf, n, offset); }
ssize_t pwrite(int fd, const void *buf, size_t n, off_t offset) { return pwrite64(fd, buf, n, offset); }
int ftruncate(int fd, off_t size) { return ftruncate64(fd, size); }
int fdatasync(int fd) { return fsync(fd); }
void *mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset) { return mmap64(at, n, prot, flags, fd, offset); }
