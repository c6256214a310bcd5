package generics

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
)

// Codec turns values into payloads and back. Its methods may be called from several goroutines at once.
//
// The text of an error of Decode is stored with the job and logged, so it should not quote the payload. A codec that
// panics is treated like one that returns an error.
type Codec[T any] interface {
	Encode(value T) ([]byte, error)
	Decode(payload []byte) (T, error)
}

// JSON is the default codec: encoding/json, with these choices. Fields that T doesn't have are ignored. A number that
// lands in an any becomes a [json.Number], so that integers of any size survive. HTML characters are not escaped, and no
// line end follows the value. []byte is base64, as in encoding/json.
//
// What has no exact value in Go is refused instead of changed: text that isn't UTF-8 and halves of a surrogate pair (in
// both directions), the tokens NaN and Infinity that Python writes, a number that its field can't hold, and anything
// after the value. A float64 field rounds large integers: use int64, json.Number or any where they matter.
func JSON[T any]() Codec[T] { return jsonCodec[T]{} }

// StrictJSON is [JSON], and refuses fields that T doesn't have.
func StrictJSON[T any]() Codec[T] { return jsonCodec[T]{strict: true} }

// Bytes passes payloads through as they are: for jobs in another format, or put by the command line. The value decoded
// is the job's Payload itself, not a copy.
func Bytes() Codec[[]byte] { return bytesCodec{} }

type bytesCodec struct{}

func (bytesCodec) Encode(value []byte) ([]byte, error)   { return value, nil }
func (bytesCodec) Decode(payload []byte) ([]byte, error) { return payload, nil }

type jsonCodec[T any] struct{ strict bool }

func (c jsonCodec[T]) Encode(value T) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return nil, err
	}
	payload := bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
	// encoding/json writes this escape in place of bytes that aren't UTF-8; a U+FFFD in the text is written as itself.
	if bytes.Contains(payload, []byte(`\ufffd`)) && hasBadText(reflect.ValueOf(value)) {
		return nil, errors.New("a string is not UTF-8: use []byte for it")
	}
	return payload, nil
}

func (c jsonCodec[T]) Decode(payload []byte) (T, error) {
	var value, zero T
	if at := badText(payload); at >= 0 {
		return zero, &jsonError{text: fmt.Sprintf("text at byte %d is not valid Unicode", at)}
	}
	dec := json.NewDecoder(bytes.NewReader(payload))
	dec.UseNumber()
	if c.strict {
		dec.DisallowUnknownFields()
	}
	if err := dec.Decode(&value); err != nil {
		return zero, explain(err, dec.InputOffset())
	}
	end := dec.InputOffset()
	if len(bytes.TrimLeft(payload[end:], " \t\r\n")) > 0 { // asking the decoder for more would cost it another buffer
		return zero, &jsonError{text: fmt.Sprintf("something follows the JSON value, which ends at byte %d", end)}
	}
	return value, nil
}

// jsonError is a decode error whose text has nothing of the payload in it.
type jsonError struct {
	text  string
	cause error
}

func (e *jsonError) Error() string { return e.text }
func (e *jsonError) Unwrap() error { return e.cause }

// explain says what is wrong with a payload without quoting it. Decoders of single types (time.Time, say) do quote it,
// so of an unknown error only the type is told.
func explain(err error, offset int64) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	text := fmt.Sprintf("a value before byte %d was refused by its type: %T", offset, err)
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		text = "unexpected end of JSON input"
	case errors.As(err, &syntax):
		text = fmt.Sprintf("invalid JSON at byte %d: %s", syntax.Offset, syntax.Error())
	case errors.As(err, &kind):
		what, _, _ := strings.Cut(kind.Value, " ") // "number 12345" has the number in it
		text = fmt.Sprintf("the JSON %s before byte %d doesn't fit Go's %s", what, kind.Offset, kind.Type)
		if kind.Field != "" {
			text += fmt.Sprintf(" in %s.%s", kind.Struct, kind.Field)
		}
	case strings.HasPrefix(err.Error(), "json: unknown field "):
		text = fmt.Sprintf("unknown field before byte %d", offset)
	}
	return &jsonError{text: text, cause: err}
}
