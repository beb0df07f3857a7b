package secrets

import (
	"fmt"
	"unicode/utf8"
)

// MaxValue is the largest value of a secret, bytes.
const MaxValue = 16 << 10

// Value is the value of a secret. Whatever formats or encodes a Value gets the word [secret]: only a conversion to
// string yields the value.
type Value string

const hidden = "[secret]"

// String hides the value.
func (Value) String() string { return hidden }

// Format hides the value from every verb of fmt.
func (Value) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(hidden)) }

// MarshalText hides the value from encoders, for example of JSON.
func (Value) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// Validate returns an error that says what is allowed. It does not quote the value.
func (v Value) Validate() error {
	switch {
	case v == "":
		return fmt.Errorf("the value is empty: it is 1 to %d bytes", MaxValue)
	case len(v) > MaxValue:
		return fmt.Errorf("the value has more than %d bytes: at most %d are allowed", MaxValue, MaxValue)
	case !utf8.ValidString(string(v)):
		return fmt.Errorf("the value is not UTF-8: encode bytes, for example with base64")
	}
	return nil
}
