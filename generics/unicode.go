package generics

import (
	"bytes"
	"encoding"
	"encoding/json"
	"reflect"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// badText returns where JSON text can't become a Go string unchanged: bytes that aren't UTF-8, or an escape for half of
// a surrogate pair. It returns -1 if there is no such place. encoding/json would replace both by U+FFFD.
func badText(payload []byte) int {
	if !utf8.Valid(payload) {
		for at := 0; ; {
			r, size := utf8.DecodeRune(payload[at:])
			if r == utf8.RuneError && size <= 1 {
				return at
			}
			at += size
		}
	}
	for at := 0; ; {
		i := bytes.IndexByte(payload[at:], '\\')
		if i < 0 {
			return -1
		}
		at += i
		first, ok := escapedUnit(payload[at:])
		switch {
		case !ok:
			at += 2 // an escape of one character, or no JSON at all, which the decoder will say
			if at > len(payload) {
				return -1
			}
		case !utf16.IsSurrogate(first):
			at += 6
		default:
			second, _ := escapedUnit(payload[at+6:])
			if utf16.DecodeRune(first, second) == utf8.RuneError {
				return at
			}
			at += 12
		}
	}
}

// escapedUnit reads \uXXXX at the start of b.
func escapedUnit(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	unit, err := strconv.ParseUint(string(b[2:6]), 16, 32)
	return rune(unit), err == nil
}

var (
	jsonMarshaler = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
)

// hasBadText reports whether a string inside v isn't UTF-8. Types that encode themselves are left alone. v has been
// encoded, so it has no cycles.
func hasBadText(v reflect.Value) bool {
	if !v.IsValid() || v.Type().Implements(jsonMarshaler) || v.Type().Implements(textMarshaler) {
		return false
	}
	switch v.Kind() {
	case reflect.String:
		return !utf8.ValidString(v.String())
	case reflect.Pointer, reflect.Interface:
		return hasBadText(v.Elem())
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if hasBadText(v.Index(i)) {
				return true
			}
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			if hasBadText(it.Key()) || hasBadText(it.Value()) {
				return true
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if (f.IsExported() || f.Anonymous) && hasBadText(v.Field(i)) {
				return true
			}
		}
	}
	return false
}
