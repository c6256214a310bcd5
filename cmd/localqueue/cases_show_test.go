//go:build unix

package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/localqueue/localqueue/queue"
)

// hostile are payloads that a careless display obeys, rewrites or chokes on.
var hostile = map[string]string{
	"markup":        `<script>alert(1)</script>&amp;"'`,
	"escapes":       "\x1b[31mred\x1b]0;title\a\x1b[2J\r\b\x7f\u009b2J",
	"directions":    "abc\u202edcba\u2066\u2028\u200b",
	"big integer":   "1970670598291982290",
	"Python's NaN":  `{"a": NaN, "b": -Infinity}`,
	"spaced JSON":   " {\"a\" : 1.50, \"a\": 2}\r\n",
	"half a pair":   `"\ud800"`,
	"invalid UTF-8": "\xff\xfe\x00{\"a\":1}\xc3",
	"nothing":       "",
	"zeros":         "\x00\x00",
	"megabytes":     strings.Repeat("0123456789\x1b[31m", sized(1, 10)<<20/15),
}

// bytesIn are the exact bytes that a document carries.
func bytesIn(t *testing.T, text string) string {
	t.Helper()
	var doc struct{ Text, Base64 *string }
	if err := json.Unmarshal([]byte(text), &doc); err != nil || (doc.Text == nil) == (doc.Base64 == nil) {
		t.Fatalf("%v in %.200q", err, text)
	}
	if doc.Text != nil {
		return *doc.Text
	}
	b, err := base64.StdEncoding.DecodeString(*doc.Base64)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// unsafeIn is the first character that a terminal would obey; 0 if there is none.
func unsafeIn(out string) rune {
	for i, r := range out {
		if _, size := utf8.DecodeRuneInString(out[i:]); r == utf8.RuneError && size == 1 {
			return r
		}
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)) {
			return r
		}
	}
	return 0
}

func TestCase23_EveryPayloadIsShownSafelyAndKeptByteForByte(t *testing.T) {
	p := newPlace(t)
	file := filepath.Join(filepath.Dir(p.dir), "payload")
	prints := func(terminal bool, args ...string) string {
		t.Helper()
		app := newInProcess(p.dir)
		app.outTerminal = terminal
		if code := run(t.Context(), &app.app, args); code != 0 {
			t.Fatalf("%v: %s", args, &app.stderr)
		}
		return app.stdout.String()
	}
	piped := func(args ...string) string { t.Helper(); return prints(false, args...) }
	onTerminal := func(args ...string) string { t.Helper(); return prints(true, args...) }
	ids := map[string]int64{}
	for name, payload := range hostile {
		if err := os.WriteFile(file, []byte(payload), 0o600); err != nil {
			t.Fatal(err)
		}
		var id int64
		if _, err := fmt.Sscan(piped("put", "--file", file, "--max-retries", "0"), &id); err != nil {
			t.Fatal(err)
		}
		ids[name] = id
		same := func(where, got string) {
			t.Helper()
			if got != payload {
				t.Errorf("%s: %d bytes in %s, %d were put: %.100q", name, len(got), where, len(payload), got)
			}
		}
		number := fmt.Sprint(id)
		same("peek --json", bytesIn(t, piped("peek", "--json")))
		same("get", piped("get", "--lease", "1h"))
		piped("cancel", number)
		same("show", piped("show", number))
		same("show --json", bytesIn(t, piped("show", number, "--json")))
		piped("retry", number)
		same("show --json after a retry", bytesIn(t, piped("show", number, "--json")))
		for _, args := range [][]string{{"show", number}, {"peek"}, {"get", "--lease", "1h"}} {
			if r := unsafeIn(onTerminal(args...)); r != 0 {
				t.Errorf("%s: %v prints %q to a terminal", name, args, r)
			}
		}
		piped("cancel", number)
	}
	for _, args := range [][]string{{"list"}, {"stats"}, {"queues"}} {
		if r := unsafeIn(onTerminal(args...)); r != 0 {
			t.Errorf("%v prints %q to a terminal", args, r)
		}
	}
	exported := map[int64]string{}
	for line := range strings.Lines(piped("export")) {
		var job struct{ ID int64 }
		if err := json.Unmarshal([]byte(line), &job); err != nil {
			t.Fatal(err)
		}
		if job.ID > 0 {
			exported[job.ID] = bytesIn(t, line)
		}
	}
	for name, id := range ids {
		if exported[id] != hostile[name] {
			t.Errorf("%s: export has %.100q", name, exported[id])
		}
	}
}

// Names, headers and errors are as hostile as payloads.
func TestCase23_WhatIsToldBesideThePayloadIsShownSafelyToo(t *testing.T) {
	p := newPlace(t)
	id := p.put("x", "--header", "h=\x1b[2J\u202e", "--max-retries", "0")
	j, err := p.queue().TryGet(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p.run(0, "fail", fmt.Sprint(id), "--receipt", j.Receipt, "--error", "<b>\x1b[31m\r\nboom\u2066")
	for _, args := range [][]string{{"show", fmt.Sprint(id)}, {"list"}} {
		app := newInProcess(p.dir)
		app.outTerminal = true
		if code := run(t.Context(), &app.app, args); code != 0 {
			t.Fatalf("%v: %s", args, &app.stderr)
		}
		if r := unsafeIn(app.stdout.String()); r != 0 {
			t.Errorf("%v prints %q to a terminal", args, r)
		}
		if !strings.Contains(app.stdout.String(), "boom") {
			t.Errorf("%v doesn't tell the error: %s", args, &app.stdout)
		}
	}
	out, _ := p.run(0, "show", fmt.Sprint(id), "--json")
	var doc struct {
		LastError string            `json:"last_error"`
		Headers   map[string]string `json:"headers"`
	}
	if err := json.Unmarshal([]byte(out), &doc); err != nil || doc.LastError != "<b>\x1b[31m\r\nboom\u2066" || doc.Headers["h"] != "\x1b[2J\u202e" {
		t.Errorf("%v: %+v", err, doc)
	}
	if bytes.ContainsAny([]byte(out), "\x1b\r") {
		t.Errorf("the document has control characters as they are: %q", out)
	}
}

// A dry run is what somebody saw; by the time of the real one, a worker has settled some.
func TestCase24_RetryAllCountsWhatItReallyChanged(t *testing.T) {
	p := newPlace(t)
	for i := range 5 {
		p.run(0, "cancel", fmt.Sprint(p.put(fmt.Sprint(i))))
	}
	if out, _ := p.run(0, "retry", "--all", "--dry-run"); out != "would retry 5\n" {
		t.Errorf("%q", out)
	}
	p.run(0, "retry", "1")
	p.run(0, "retry", "2")
	p.run(0, "work", "--until-empty", "--", "sh", "-c", `test $LOCALQUEUE_ID = 1 || exit 65`) // 2 fails again
	p.run(0, "retry", "3")
	p.run(0, "get", "--lease", "1h")
	p.run(0, "delete", "4")
	if out, _ := p.run(0, "retry", "--all"); out != "retried 2\n" {
		t.Errorf("%q", out)
	}
	p.expect(1, queue.Acked, 1)
	p.expect(2, queue.Ready, 0)
	p.expect(3, queue.Leased, 1)
	p.expect(5, queue.Ready, 0)
	_, errs := p.run(1, "retry", "3", "--json")
	if !strings.Contains(errs, `"code":"not_failed"`) {
		t.Error(errs)
	}
}
