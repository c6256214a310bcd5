package lines

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
)

func TestLinesOfConcurrentWritersStayWhole(t *testing.T) {
	var out bytes.Buffer
	sink := NewSink(&out, nil)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			w := sink.Writer()
			for range 100 {
				for _, part := range []string{"<", strings.Repeat(string(rune('a'+g)), 50), ">", "\n"} {
					_, _ = w.Write([]byte(part))
				}
			}
			w.Flush()
		})
	}
	wg.Wait()
	for line := range strings.Lines(out.String()) {
		if len(line) != 53 || strings.Trim(line, line[1:2]+"<>\n") != "" {
			t.Fatalf("mixed line %q", line)
		}
	}
	if n := strings.Count(out.String(), "\n"); n != 800 {
		t.Errorf("%d lines, want 800", n)
	}
}

func TestALoneWriterIsPassedOnByteForByte(t *testing.T) {
	var out bytes.Buffer
	w := NewSink(&out, nil).Writer()
	in := "one\ntwo\r\n\n" + strings.Repeat("x", 3*chunk) + "\nno newline at the end"
	for rest := []byte(in); len(rest) > 0; {
		n := min(7777, len(rest))
		_, _ = w.Write(rest[:n])
		rest = rest[n:]
		if len(w.held) > chunk+7777 {
			t.Fatalf("%d bytes held back", len(w.held))
		}
	}
	w.Flush()
	if out.String() != in {
		t.Errorf("%d bytes came out of %d, or others", out.Len(), len(in))
	}
}

func TestAnUnfinishedLineIsClosedBeforeAnotherWriterGoesOn(t *testing.T) {
	var out bytes.Buffer
	sink := NewSink(&out, nil)
	a, b := sink.Writer(), sink.Writer()
	_, _ = a.Write([]byte("half"))
	a.Flush()
	_, _ = b.Write([]byte("whole\n"))
	_, _ = a.Write([]byte("rest\n"))
	if got := out.String(); got != "half\nwhole\nrest\n" {
		t.Errorf("got %q", got)
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("gone") }

func TestABrokenOutputIsToldOnceAndThenIgnored(t *testing.T) {
	told := 0
	w := NewSink(broken{}, func(error) { told++ }).Writer()
	for range 3 {
		if n, err := w.Write([]byte("line\n")); n != 5 || err != nil {
			t.Fatal(n, err)
		}
	}
	if told != 1 {
		t.Errorf("told %d times", told)
	}
}

func TestTailKeepsTheLastBytes(t *testing.T) {
	for _, size := range []int{1, 3, 10, 11, 25} {
		tail, all := NewTail(10), ""
		for i := range 100 {
			part := strings.Repeat(fmt.Sprint(i%10), size)
			all += part
			_, _ = tail.Write([]byte(part))
			if want := all[max(0, len(all)-10):]; string(tail.Bytes()) != want {
				t.Fatalf("after %d writes of %d: %q, want %q", i+1, size, tail.Bytes(), want)
			}
			if cap(tail.buf) > 100 {
				t.Fatalf("%d bytes in use", cap(tail.buf))
			}
		}
	}
}
