package archive

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// shape is which names the objects of a decoded value may have.
type shape struct {
	fields map[string]*shape // of a struct; nil: any names
	each   *shape            // of the elements of an array
	object bool
}

var jobShape, headerShape = shapeOf(reflect.TypeFor[jobLine]()), shapeOf(reflect.TypeFor[header]())

// shapeOf is nil for what holds no object of the format.
func shapeOf(t reflect.Type) *shape {
	switch {
	case t == reflect.TypeFor[json.RawMessage](), t == reflect.TypeFor[instant]():
		return nil
	case t.Kind() == reflect.Pointer:
		return shapeOf(t.Elem())
	case t.Kind() == reflect.Slice:
		return &shape{each: shapeOf(t.Elem())}
	case t.Kind() == reflect.Map:
		return &shape{object: true}
	case t.Kind() == reflect.Struct:
		s := &shape{object: true, fields: map[string]*shape{}}
		for i := range t.NumField() {
			name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
			s.fields[name] = shapeOf(t.Field(i).Type)
		}
		return s
	}
	return nil
}

// check refuses names that package json would take for what they don't say: one that is known but for its case, and one
// that is there twice, of which the last would count. The text is valid JSON, and was decoded.
func (s *shape) check(text []byte) error {
	if text = bytes.TrimLeft(text, blanks); s == nil || len(text) == 0 {
		return nil
	}
	switch {
	case s.object && text[0] == '{':
		seen := map[string]bool{}
		return walk(text, func(quoted, value []byte) error {
			name, err := unquote(quoted)
			if err != nil {
				return err
			}
			if seen[name] {
				return fmt.Errorf("%.80q is there twice: which of them counts?", name)
			}
			seen[name] = true
			field, known := s.fields[name]
			for right := range s.fields {
				if !known && strings.EqualFold(right, name) {
					return fmt.Errorf("%.80q is unknown: it is written %q", name, right)
				}
			}
			return field.check(value)
		})
	case s.each != nil && text[0] == '[':
		return walk(text, func(_, value []byte) error { return s.each.check(value) })
	}
	return nil
}

const blanks = " \t\r\n"

// walk goes through the members of an object, or the elements of an array, which have no names.
func walk(text []byte, f func(name, value []byte) error) error {
	named := text[0] == '{'
	for text = bytes.TrimLeft(text[1:], blanks); text[0] != '}' && text[0] != ']'; text = bytes.TrimLeft(text, blanks) {
		var name []byte
		if named {
			end := stringEnd(text)
			name = text[:end]
			text = text[end+bytes.IndexByte(text[end:], ':')+1:]
		}
		end := valueEnd(text)
		if err := f(name, text[:end]); err != nil {
			return err
		}
		if text = text[end:]; text[0] == ',' {
			text = bytes.TrimLeft(text[1:], blanks)
		}
	}
	return nil
}

// valueEnd is where the value ends which the text begins with: at what can't belong to it.
func valueEnd(text []byte) int {
	depth := 0
	for i := 0; ; i++ {
		switch text[i] {
		case '"':
			i += stringEnd(text[i:]) - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i
			}
			depth--
		case ',':
			if depth == 0 {
				return i
			}
		}
	}
}

// stringEnd is the length of the quoted string which the text begins with.
func stringEnd(text []byte) int {
	for i := 1; ; i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
}

func unquote(quoted []byte) (name string, err error) {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return string(quoted[1 : len(quoted)-1]), nil
	}
	err = json.Unmarshal(quoted, &name)
	return name, err
}
