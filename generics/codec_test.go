package generics

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestJSONWritesNoLineEndAndNoHTMLEscapes(t *testing.T) {
	got, err := JSON[map[string]string]().Encode(map[string]string{"a": "<b>&"})
	if err != nil || string(got) != `{"a":"<b>&"}` {
		t.Fatalf("got %q, %v", got, err)
	}
}

func TestJSONKeepsIntegersOfAnySize(t *testing.T) {
	const text = `{"id":1970670598291982290,"huge":123456789012345678901234567890}`
	v, err := JSON[any]().Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"id": json.Number("1970670598291982290"), "huge": json.Number("123456789012345678901234567890")}
	if diff := cmp.Diff(want, v); diff != "" {
		t.Error(diff)
	}
	typed, err := JSON[struct{ ID int64 }]().Decode([]byte(text))
	if err != nil || typed.ID != 1970670598291982290 {
		t.Errorf("got %v, %v", typed, err)
	}
}

func TestJSONCarriesBytesAsBase64(t *testing.T) {
	b, err := JSON[[]byte]().Encode([]byte{0, 0xff})
	if err != nil || string(b) != `"AP8="` {
		t.Fatalf("got %q, %v", b, err)
	}
	v, err := JSON[[]byte]().Decode(b)
	if err != nil || string(v) != "\x00\xff" {
		t.Errorf("got %q, %v", v, err)
	}
}

func TestJSONReadsWhatPythonWritesOrRefusesIt(t *testing.T) {
	for payload, want := range map[string]string{
		`"caf\u00e9 \ud83d\ude00"`: "café 😀", // ensure_ascii
		`"café 😀"`:                 "café 😀",
		`"\\ud83d"`:                `\ud83d`, // an escaped backslash
		`"\ufffd"`:                 "\uFFFD",
	} {
		if got, err := JSON[string]().Decode([]byte(payload)); err != nil || got != want {
			t.Errorf("%s: got %q, %v", payload, got, err)
		}
	}
	for _, payload := range []string{
		`NaN`, `Infinity`, `-Infinity`, `{"x": NaN}`, // tokens of Python's own
		`"\ud83d"`, `"\ude00\ud83d"`, `"\ud83d\n"`, `"\ud83dx\ude00"`, `"\uD800\u0041"`, // halves of a pair
		"\"\xff\"", "\"a\xc3\"", // not UTF-8
		``, ` `, `{`, `"a" "b"`, `1 2`, `{}]`, `{}x`, "1\x00",
	} {
		if v, err := JSON[any]().Decode([]byte(payload)); err == nil {
			t.Errorf("%q became %v", payload, v)
		}
	}
}

func TestJSONDecodeErrorsDoNotQuoteThePayload(t *testing.T) {
	type inner struct {
		Age  int8
		When time.Time
		Raw  []byte
		Map  map[int]string
		Sub  map[string]int8
	}
	for _, payload := range []string{
		`{"Age":987654321}`, `{"Age":"987654321"}`, `{"When":"987654321"}`, `{"Raw":"987654321?"}`, `{"Map":{"x987654321":""}}`,
		`{"Sub":{"987654321":300}}`,
		`{"987654321":1}`, `987654321`, `{"Age":1} 987654321`, `987654321x`,
	} {
		_, err := StrictJSON[inner]().Decode([]byte(payload))
		if err == nil {
			t.Errorf("%s: no error", payload)
		} else if strings.Contains(err.Error(), "987654321") {
			t.Errorf("%s: %v", payload, err)
		}
	}
	var kind *json.UnmarshalTypeError
	_, err := JSON[inner]().Decode([]byte(`{"Age":300}`))
	if !errors.As(err, &kind) || !strings.Contains(err.Error(), "Age") {
		t.Errorf("the field isn't named, or the cause is gone: %v", err)
	}
}

func TestOnlyStrictJSONRefusesUnknownFields(t *testing.T) {
	payload := []byte(`{"App":"a","Version":2,"extra":true}`)
	if v, err := JSON[deploy]().Decode(payload); err != nil || v != (deploy{"a", 2}) {
		t.Errorf("got %v, %v", v, err)
	}
	if v, err := StrictJSON[deploy]().Decode(payload); err == nil {
		t.Errorf("got %v", v)
	}
}

func TestJSONRefusesToEncodeWhatItCannotKeep(t *testing.T) {
	type nested struct {
		P *[]map[string]any
	}
	bad := "\xff"
	for _, v := range []any{
		math.NaN(), math.Inf(1), make(chan int), bad, []string{"ok", bad}, map[string]int{bad: 1}, &bad,
		nested{&[]map[string]any{{"k": [1]string{bad}}}},
	} {
		if b, err := JSON[any]().Encode(v); err == nil {
			t.Errorf("%v became %s", v, b)
		}
	}
	for _, v := range []any{"\uFFFD", `\ufffd`, json.RawMessage(`"\ufffd"`), struct{ hidden string }{bad}} {
		if _, err := JSON[any]().Encode(v); err != nil {
			t.Errorf("%v: %v", v, err)
		}
	}
}

func TestBytesPassThrough(t *testing.T) {
	in := []byte{0, 1, 0xff}
	b, err := Bytes().Encode(in)
	if err != nil {
		t.Fatal(err)
	}
	out, err := Bytes().Decode(b)
	if err != nil || string(out) != string(in) {
		t.Errorf("got %v, %v", out, err)
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range []string{
		`{"app":"web","Version":1970670598291982290}`, `"caf\u00e9 \ud83d\ude00"`, `"\ud83d"`, `NaN`, `[1,2,{"a":null}]`, `1e400`, `-0.0`,
		"\"\xff\"", `{"a":1} x`, `\`, `"\u12`, `""`,
	} {
		f.Add([]byte(s))
	}
	type typed struct {
		App     string
		Version int64
		Ratio   float64
		Tags    []string
		Blob    []byte
		Any     any
		Next    *typed
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		again(t, JSON[any](), payload)
		again(t, JSON[typed](), payload)
		again(t, StrictJSON[typed](), payload)
	})
}

// again checks that what a payload decodes to encodes, and decodes to the same.
func again[T any](t *testing.T, c Codec[T], payload []byte) {
	v, err := c.Decode(payload)
	if err != nil {
		return
	}
	b, err := c.Encode(v)
	if err != nil {
		t.Fatalf("%q decodes to %#v, which doesn't encode: %v", payload, v, err)
	}
	w, err := c.Decode(b)
	if err != nil || !reflect.DeepEqual(v, w) {
		t.Fatalf("%q decodes to %#v, encoded %q, which decodes to %#v, %v", payload, v, b, w, err)
	}
}
