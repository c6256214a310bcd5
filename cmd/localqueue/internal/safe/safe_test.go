package safe

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestWhatATerminalWouldObeyIsEscaped(t *testing.T) {
	for in, want := range map[string]string{
		"plain äöü 漢字 🎉":     "plain äöü 漢字 🎉",
		"\x1b[31mred":        `\x1b[31mred`,
		"a\nb\tc\r":          `a\nb\tc\r`,
		"\x00\x7f\u0085":     `\x00\x7f\x85`,
		"\u009b31m":          `\x9b31m`,
		"x\u202egpj":         `x\u202egpj`,
		"l\u2028s\U000e0041": `l\u2028s\U000e0041`,
		"bad\xff\xfeutf":     `bad\xff\xfeutf`,
		"real \ufffd":        "real \ufffd",
	} {
		if got := Line(in); got != want {
			t.Errorf("Line(%q) = %q, want %q", in, got, want)
		}
	}
	if got := Block([]byte("a\n\tb\x1b")); got != "a\n\tb\\x1b" {
		t.Errorf("Block = %q", got)
	}
}

func TestCutKeepsToItsWidth(t *testing.T) {
	for _, s := range []string{"", "short", strings.Repeat("ä", 50), strings.Repeat("\x1b", 50), strings.Repeat("x", 1<<20), "\xff" + strings.Repeat("漢", 4000)} {
		got := Cut(s, 20)
		if n := utf8.RuneCountInString(got); n > 20 {
			t.Errorf("Cut(%.20q, 20) has %d runes", s, n)
		}
		if len(s) > 200 && !strings.HasSuffix(got, "…") {
			t.Errorf("Cut(%.20q, 20) = %q: no ellipsis", s, got)
		}
	}
}

func FuzzLineIsPrintable(f *testing.F) {
	f.Add("\x1b]0;title\a\u202e\xff")
	f.Fuzz(func(t *testing.T, s string) {
		for _, r := range Line(s) {
			if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
				t.Fatalf("Line(%q) lets %U through", s, r)
			}
		}
		if !utf8.ValidString(Line(s)) || !utf8.ValidString(Block([]byte(s))) {
			t.Fatalf("Line(%q) is not UTF-8", s)
		}
	})
}
