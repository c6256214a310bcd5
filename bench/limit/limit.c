// The limit of localqueue's design: what SQLite itself does with this schema, these statements and these pragmas, when
// nothing stands around them. The queue's own figures mean little alone; beside these they say what Go, database/sql
// and the engine cost on the machine at hand.
//
// It reads the migrations and the queries at run time, so that it can't fall behind them, and is built against the
// SQLite that the driver's module ships, with the driver's flags. Every operation is BEGIN IMMEDIATE, the statements, COMMIT,
// all prepared once. One JSON line per work goes to standard output:
//
//   {"work":"put","durability":"normal","per_second":12345,"n":100000}
//
// put              one job of 128 bytes per transaction
// get+ack          Next and Claim in one transaction, Ack in another; per_second counts jobs, not transactions
// putmany          the PutMany statement, 1000 jobs a time
// getmany+ackmany  Outlook and ClaimMany in one transaction, AckMany in another, 1000 jobs a time
// bare             one row into a table with one index and nothing else: what a commit costs before there is a queue
//
// Build and run (make limit does it): the flags are the #cgo CFLAGS of the driver's sqlite3.go.
//   D=$(go list -m -f '{{.Dir}}' github.com/mattn/go-sqlite3)
//   gcc $(sed -n 's/^#cgo CFLAGS: //p' "$D/sqlite3.go") -O2 -I"$D" -o build/limit bench/limit/limit.c "$D/sqlite3-binding.c" -lm -lpthread -ldl
//   build/limit sql/sqlite /var/tmp/limit.db 100000 normal
#include <dirent.h>
#include <errno.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sqlite3-binding.h"

enum { PAYLOAD = 128, BATCH = 1000, LEASE_MS = 600000, RECEIPT = 64 };

static const char *const queue = "limit";
static const char *durability;
static const char *path;
static sqlite3 *db;
static sqlite3_stmt *begin_stmt, *commit_stmt;
static char payload[PAYLOAD];

static void die(const char *format, ...) {
    va_list args;
    va_start(args, format);
    fputs("limit: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(1);
}

// A text that grows; it stays terminated.
struct text {
    char *s;
    size_t len, cap;
};

static void append(struct text *t, const char *format, ...) {
    for (;;) {
        va_list args;
        va_start(args, format);
        int n = vsnprintf(t->s ? t->s + t->len : NULL, t->cap - t->len, format, args);
        va_end(args);
        if (n < 0) die("formatting failed");
        if (t->s && t->len + (size_t)n < t->cap) {
            t->len += (size_t)n;
            return;
        }
        t->cap = 2 * (t->cap + (size_t)n + 1);
        if (!(t->s = realloc(t->s, t->cap))) die("out of memory");
    }
}

static void read_file(const char *name, struct text *into) {
    char buf[4096];
    FILE *f = fopen(name, "r");
    if (!f) die("%s: %s", name, strerror(errno));
    while (fgets(buf, sizeof buf, f)) append(into, "%s", buf);
    if (ferror(f)) die("%s: read error", name);
    fclose(f);
}

static int is_sql(const struct dirent *e) {
    size_t n = strlen(e->d_name);
    return n > 4 && !strcmp(e->d_name + n - 4, ".sql");
}

// Calls use with the text of each .sql file of a directory, in the order of their names, which is goose's for migrations.
static void each_sql(const char *dir, const char *sub, void (*use)(const char *name, char *text)) {
    struct text where = {0};
    struct dirent **list;
    append(&where, "%s/%s", dir, sub);
    int n = scandir(where.s, &list, is_sql, alphasort);
    if (n < 0) die("%s: %s", where.s, strerror(errno));
    if (n == 0) die("%s: no .sql files", where.s);
    for (int i = 0; i < n; i++) {
        struct text name = {0}, body = {0};
        append(&name, "%s/%s", where.s, list[i]->d_name);
        read_file(name.s, &body);
        use(name.s, body.s ? body.s : "");
        free(name.s);
        free(body.s);
        free(list[i]);
    }
    free(list);
    free(where.s);
}

static void run(const char *sql) {
    char *message = NULL;
    if (sqlite3_exec(db, sql, NULL, NULL, &message) != SQLITE_OK) die("%s: %.60s", message ? message : "error", sql);
}

// goose's marks are comments to SQLite, so the whole Up part is one script.
static void migrate(const char *name, char *text) {
    char *up = strstr(text, "-- +goose Up"), *down = strstr(text, "-- +goose Down");
    if (!up) die("%s: no Up part", name);
    if (down) *down = 0;
    run(up);
}

static struct text queries;

static void collect(const char *name, char *text) {
    (void)name;
    append(&queries, "%s\n", text);
}

// A prepared statement and where its parameters are, in the order in which the caller names them.
struct stmt {
    sqlite3_stmt *s;
    int at[16];
};

static sqlite3_stmt *prepare_sql(const char *sql) {
    sqlite3_stmt *s;
    if (sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, &s, NULL) != SQLITE_OK) die("%s: %.60s", sqlite3_errmsg(db), sql);
    return s;
}

// Prepares the query of that name; params lists its parameters, one word each. Preparing ends at the statement's own
// semicolon, so whatever follows in the text does no harm.
static struct stmt prepare(const char *name, const char *params) {
    struct stmt st = {0};
    struct text mark = {0};
    char words[256], *rest = words;
    append(&mark, "-- name: %s :", name);
    const char *sql = strstr(queries.s, mark.s);
    if (!sql || !(sql = strchr(sql, '\n'))) die("no query %s", name);
    free(mark.s);
    st.s = prepare_sql(sql);

    int n = 0;
    snprintf(words, sizeof words, "%s", params);
    for (char *word; (word = strtok_r(rest, " ", &rest));) {
        if (!(st.at[n++] = sqlite3_bind_parameter_index(st.s, word))) die("query %s has no parameter %s", name, word);
    }
    if (n != sqlite3_bind_parameter_count(st.s)) die("query %s has parameters beside %s", name, params);
    return st;
}

static void put_int(struct stmt *st, int i, sqlite3_int64 v) { sqlite3_bind_int64(st->s, st->at[i], v); }
static void put_text(struct stmt *st, int i, const char *v) { sqlite3_bind_text(st->s, st->at[i], v, -1, SQLITE_STATIC); }
static void put_blob(struct stmt *st, int i, const void *v, size_t n) { sqlite3_bind_blob(st->s, st->at[i], v, (int)n, SQLITE_STATIC); }

// Steps once: 1 for a row, 0 for the end, after which the statement can be bound anew.
static int step(sqlite3_stmt *s) {
    int rc = sqlite3_step(s);
    if (rc == SQLITE_ROW) return 1;
    if (rc != SQLITE_DONE || sqlite3_reset(s) != SQLITE_OK) die("%s: %.60s", sqlite3_errmsg(db), sqlite3_sql(s));
    return 0;
}

static void exec(sqlite3_stmt *s) { while (step(s)) continue; }

// Takes the lock and then reads the clock, in milliseconds, as the engine does.
static sqlite3_int64 begin(void) {
    struct timespec t;
    exec(begin_stmt);
    clock_gettime(CLOCK_REALTIME, &t);
    return (sqlite3_int64)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void commit(void) { exec(commit_stmt); }

// Refuses what exists: the file is removed at the end, and it should be one that was made here.
static void open_file(const char *sql_dir) {
    if (!access(path, F_OK)) die("%s exists; name a file to be made", path);
    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK) die("%s: %s", path, sqlite3_errmsg(db));
    // The engine's own, in the order it needs: a page size only counts before the first write.
    run("PRAGMA page_size = 2048; PRAGMA journal_mode = WAL; PRAGMA foreign_keys = 0; PRAGMA temp_store = MEMORY;"
        "PRAGMA cache_size = -16000; PRAGMA wal_autocheckpoint = 4000; PRAGMA journal_size_limit = 16777216;");
    run(strcmp(durability, "full") ? "PRAGMA synchronous = NORMAL" : "PRAGMA synchronous = FULL");
    begin_stmt = prepare_sql("BEGIN IMMEDIATE");
    commit_stmt = prepare_sql("COMMIT");
    if (sql_dir) each_sql(sql_dir, "migrations", migrate);
}

static void close_file(void) {
    for (sqlite3_stmt *s; (s = sqlite3_next_stmt(db, NULL));) sqlite3_finalize(s);
    if (sqlite3_close(db) != SQLITE_OK) die("close: %s", sqlite3_errmsg(db));
    if (unlink(path)) die("%s: %s", path, strerror(errno)); // closing has removed -wal and -shm
}

static struct timespec started;

static void start(void) { clock_gettime(CLOCK_MONOTONIC, &started); }

static void report(const char *work, long n) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    double seconds = (double)(now.tv_sec - started.tv_sec) + (double)(now.tv_nsec - started.tv_nsec) / 1e9;
    printf("{\"work\":\"%s\",\"durability\":\"%s\",\"per_second\":%.0f,\"n\":%ld}\n", work, durability, (double)n / seconds, n);
    fflush(stdout);
}

static void work_put(long count) {
    struct stmt put = prepare("Put", "@queue @payload @max_attempts @available_at @job_id @now @priority @delayed @key_scope @headers");
    start();
    for (long i = 0; i < count; i++) {
        sqlite3_int64 now = begin();
        put_text(&put, 0, queue);
        put_blob(&put, 1, payload, sizeof payload);
        put_int(&put, 2, 3);
        put_int(&put, 3, now);
        put_int(&put, 5, now);
        for (int zero = 6; zero <= 8; zero++) put_int(&put, zero, 0);
        exec(put.s); // job_id and headers stay NULL
        commit();
    }
    report("put", count);
}

// What a receiver keeps of a claimed row to settle it.
struct claimed {
    sqlite3_int64 id;
    char receipt[RECEIPT];
};

// The payload is the last column.
static void read_payload(sqlite3_stmt *s) {
    char bytes[PAYLOAD];
    int last = sqlite3_column_count(s) - 1;
    if (sqlite3_column_bytes(s, last) != PAYLOAD) die("a payload came back with %d bytes", sqlite3_column_bytes(s, last));
    memcpy(bytes, sqlite3_column_blob(s, last), sizeof bytes);
}

static void read_claimed(sqlite3_stmt *s, struct claimed *c) {
    read_payload(s);
    c->id = sqlite3_column_int64(s, 0);
    snprintf(c->receipt, sizeof c->receipt, "%s", (const char *)sqlite3_column_text(s, 1));
}

// Makes the receipt of a delivery: its number and 128 random bits.
static void make_receipt(sqlite3_int64 delivery, char *into) {
    unsigned char random[16];
    int at = snprintf(into, RECEIPT, "%lld-", delivery);
    sqlite3_randomness(sizeof random, random);
    for (size_t i = 0; i < sizeof random; i++, at += 2) {
        into[at] = "0123456789abcdef"[random[i] >> 4];
        into[at + 1] = "0123456789abcdef"[random[i] & 15];
    }
    into[at] = 0;
}

static void work_get_ack(long count) {
    struct stmt next = prepare("Next", "@queue @now"), claim = prepare("Claim", "@delivery @receipt @lease_until @now @worker @id @queue"),
                ack = prepare("Ack", "@id @queue @receipt @now");
    struct claimed c;
    start();
    for (long i = 0; i < count; i++) {
        sqlite3_int64 now = begin();
        put_text(&next, 0, queue);
        put_int(&next, 1, now);
        if (!step(next.s)) die("nothing to claim after %ld of %ld", i, count);
        read_payload(next.s);
        c.id = sqlite3_column_int64(next.s, 0);
        sqlite3_int64 delivery = sqlite3_column_int64(next.s, 3);
        make_receipt(delivery, c.receipt);
        exec(next.s);
        put_int(&claim, 0, delivery);
        put_text(&claim, 1, c.receipt);
        put_int(&claim, 2, now + LEASE_MS);
        put_int(&claim, 3, now);
        put_text(&claim, 4, "worker");
        put_int(&claim, 5, c.id);
        put_text(&claim, 6, queue);
        exec(claim.s);
        if (sqlite3_changes(db) != 1) die("a claim changed nothing");
        commit();

        put_int(&ack, 3, begin());
        put_int(&ack, 0, c.id);
        put_text(&ack, 1, queue);
        put_text(&ack, 2, c.receipt);
        exec(ack.s);
        if (sqlite3_changes(db) != 1) die("an ack changed nothing");
        commit();
    }
    report("get+ack", count);
}

static void work_putmany(long count) {
    struct stmt put = prepare("PutMany", "@queue @payloads @max_attempts @now @spans");
    struct text spans = {0};
    static char payloads[BATCH * PAYLOAD];
    start();
    for (long done = 0; done < count;) {
        long n = count - done < BATCH ? count - done : BATCH;
        // Both are made anew for each batch: a caller's payloads are never there already in this form.
        spans.len = 0;
        for (long i = 0; i < n; i++) {
            memcpy(payloads + i * PAYLOAD, payload, PAYLOAD);
            append(&spans, "%c%lld", i ? ',' : '[', (long long)i * PAYLOAD << 25 | PAYLOAD);
        }
        append(&spans, "]");
        put_int(&put, 3, begin());
        put_text(&put, 0, queue);
        put_blob(&put, 1, payloads, (size_t)n * PAYLOAD);
        put_int(&put, 2, 3);
        put_text(&put, 4, spans.s);
        exec(put.s);
        if (sqlite3_changes(db) != n) die("PutMany stored %d of %ld", sqlite3_changes(db), n);
        commit();
        done += n;
    }
    report("putmany", count);
    free(spans.s);
}

static void work_getmany_ackmany(long count) {
    struct stmt outlook = prepare("Outlook", "@queue"), claim = prepare("ClaimMany", "@queue @now @lease @worker @n"),
                ack = prepare("AckMany", "@now @refs @queue");
    static struct claimed c[BATCH];
    struct text refs = {0};
    start();
    for (long done = 0; done < count;) {
        long n = 0, acked = 0;
        sqlite3_int64 now = begin();
        // Says whether anything has to be promoted or reclaimed first; here nothing ever has.
        put_text(&outlook, 0, queue);
        if (!step(outlook.s) || !sqlite3_column_int(outlook.s, 0)) die("nothing to claim after %ld of %ld", done, count);
        exec(outlook.s);
        put_text(&claim, 0, queue);
        put_int(&claim, 1, now);
        put_int(&claim, 2, LEASE_MS);
        put_text(&claim, 3, "worker");
        put_int(&claim, 4, BATCH);
        while (step(claim.s)) read_claimed(claim.s, &c[n++]);
        commit();

        refs.len = 0;
        for (long i = 0; i < n; i++) append(&refs, "%c\"%lld:%s\"", i ? ',' : '[', c[i].id, c[i].receipt);
        append(&refs, "]");
        put_int(&ack, 0, begin());
        put_text(&ack, 1, refs.s);
        put_text(&ack, 2, queue);
        while (step(ack.s)) acked++;
        if (acked != n) die("AckMany settled %ld of %ld", acked, n);
        commit();
        done += n;
    }
    report("getmany+ackmany", count);
    free(refs.s);
}

static void work_bare(long count) {
    run("CREATE TABLE bare (id INTEGER PRIMARY KEY, queue TEXT NOT NULL, at INTEGER NOT NULL, payload BLOB NOT NULL);"
        "CREATE INDEX bare_queue ON bare (queue, at)");
    struct stmt put = {prepare_sql("INSERT INTO bare (queue, at, payload) VALUES (?1, ?2, ?3)"), {1, 2, 3}};
    start();
    for (long i = 0; i < count; i++) {
        put_int(&put, 1, begin());
        put_text(&put, 0, queue);
        put_blob(&put, 2, payload, sizeof payload);
        exec(put.s);
        commit();
    }
    report("bare", count);
}

static void usage(void) {
    fputs("usage: limit SQLDIR FILE COUNT normal|full\n"
          "  SQLDIR  the directory with migrations/ and queries/ (sql/sqlite)\n"
          "  FILE    a scratch file that doesn't exist yet; removed afterwards\n"
          "  COUNT   jobs per work, at least 1\n",
          stderr);
    exit(2);
}

int main(int argc, char **argv) {
    char *end;
    if (argc != 5 || (strcmp(argv[4], "normal") && strcmp(argv[4], "full"))) usage();
    errno = 0;
    long count = strtol(argv[3], &end, 10);
    if (errno || *end || end == argv[3] || count < 1) usage();
    path = argv[2];
    durability = argv[4];

    // glibc gives freed memory back to the system and asks for it again at every transaction: up to 4 times slower.
    mallopt(M_TRIM_THRESHOLD, 256 << 20);
    mallopt(M_MMAP_THRESHOLD, 256 << 20);
    memset(payload, 'x', sizeof payload);
    each_sql(argv[1], "queries", collect);

    // A fresh file for each pair, so that none works in what an earlier one left.
    open_file(argv[1]);
    work_put(count);
    work_get_ack(count);
    close_file();

    open_file(argv[1]);
    work_putmany(count);
    work_getmany_ackmany(count);
    close_file();

    open_file(NULL);
    work_bare(count);
    close_file();
    free(queries.s);
    return 0;
}
