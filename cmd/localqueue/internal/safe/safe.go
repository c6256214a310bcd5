// Package safe renders text that others wrote (payloads, names, errors) so that a terminal shows it and does not obey it.
package safe

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Line renders s on one line: control characters, invisible format characters (among them those that turn the writing
// direction) and bytes that are not UTF-8 become escapes.
func Line(s string) string { return render(s, false) }

// Block is Line for a text of several lines: newlines and tabs stay.
func Block(b []byte) string { return render(string(b), true) }

// Cut is Line, shortened to at most width runes; the last one then is an ellipsis.
func Cut(s string, width int) string {
	if len(s) > 8*width { // don't render megabytes for the first few characters
		s = strings.ToValidUTF8(s[:8*width], "") + "…"
	}
	line := Line(s)
	if utf8.RuneCountInString(line) <= width {
		return line
	}
	return string([]rune(line)[:width-1]) + "…"
}

func render(s string, block bool) string {
	if plain(s, block) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 16)
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case harmless(r, block):
			b.WriteString(s[i : i+size])
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
		i += size
	}
	return b.String()
}

func plain(s string, block bool) bool {
	for i, r := range s {
		if !harmless(r, block) {
			return false
		}
		if r == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(s[i:]); size == 1 {
				return false
			}
		}
	}
	return true
}

func harmless(r rune, block bool) bool {
	if block && (r == '\n' || r == '\t') {
		return true
	}
	return !unicode.IsControl(r) && !unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)
}
