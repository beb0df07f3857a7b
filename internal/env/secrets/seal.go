package secrets

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"filippo.io/age"
)

// MaxSealed is the largest sealed secret, bytes: a value whose JSON form is several times longer, and the header.
const MaxSealed = 128 << 10

// MaxRecipients is how many recipients a sealed secret has at most. Each costs whoever opens it an operation on a curve
// for each of its keys.
const MaxRecipients = 16

// content is what is encrypted. It repeats the name, so that a ciphertext that was copied to another key is refused.
type content struct {
	Format int    `json:"format"`
	Owner  string `json:"owner"`
	Worker string `json:"worker"` // "=" for all of the owner's
	Name   string `json:"name"`
	Value  string `json:"value"`
}

const contentFormat = 1

func contentOf(n Name, v Value) content {
	worker := n.Worker
	if worker == "" {
		worker = everyWorker
	}
	return content{contentFormat, n.Owner, worker, n.Name, string(v)}
}

// Seal encrypts a value to recipients (age1…), at least one. Each of them can open it alone.
func Seal(n Name, v Value, recipients ...string) ([]byte, error) {
	if err := n.Validate(); err != nil {
		return nil, err
	}
	if err := v.Validate(); err != nil {
		return nil, err
	}
	plain, err := json.Marshal(contentOf(n, v))
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", n, err)
	}
	return encrypt(n.String(), plain, recipients)
}

// encrypt encrypts plain, which what names, to recipients.
func encrypt(what string, plain []byte, recipients []string) ([]byte, error) {
	var to []age.Recipient
	for i, r := range recipients {
		if slices.Index(recipients, r) < i {
			continue
		}
		recipient, err := age.ParseX25519Recipient(r)
		if err != nil {
			return nil, fmt.Errorf("recipient %q: it is the public key of an age identity, age1…", r)
		}
		to = append(to, recipient)
	}
	if to == nil {
		return nil, errors.New("there is no recipient to encrypt to")
	}
	if len(to) > MaxRecipients {
		return nil, fmt.Errorf("%s has %d recipients: at most %d are allowed", what, len(to), MaxRecipients)
	}
	var sealed bytes.Buffer
	w, err := age.Encrypt(&sealed, to...)
	if err != nil {
		return nil, fmt.Errorf("encrypt %s: %w", what, err)
	}
	_, err = w.Write(plain)
	if err = errors.Join(err, w.Close()); err != nil {
		return nil, fmt.Errorf("encrypt %s: %w", what, err)
	}
	if sealed.Len() > MaxSealed {
		return nil, fmt.Errorf("%s has %d bytes when encrypted: at most %d are allowed", what, sealed.Len(), MaxSealed)
	}
	return sealed.Bytes(), nil
}

// ValidRecipient reports whether text is a recipient that Seal takes.
func ValidRecipient(text string) bool {
	_, err := age.ParseX25519Recipient(text)
	return err == nil
}

// errNotOurs says that a ciphertext opens, and that its content was not made by Seal. The content is not quoted.
var errNotOurs = errors.New("its content is not that of a secret of Pinwheel")

// Open decrypts the secret of that name. The error says why it is refused, and never quotes what was decrypted, except
// for another valid name.
func (ids *Identities) Open(n Name, sealed []byte) (Value, error) {
	plain, err := decrypt(sealed, ids.all...)
	if err != nil {
		return "", fmt.Errorf("secret %s: %w", n, err)
	}
	var c content
	dec := json.NewDecoder(bytes.NewReader(plain))
	dec.DisallowUnknownFields()
	if dec.Decode(&c) != nil || c.Format != contentFormat || dec.More() {
		return "", fmt.Errorf("secret %s: %w", n, errNotOurs)
	}
	if want := contentOf(n, Value(c.Value)); c != want {
		sealedAs, err := ParseKey(c.Owner + "." + c.Worker + "." + c.Name)
		if err != nil {
			return "", fmt.Errorf("secret %s: %w", n, errNotOurs)
		}
		return "", fmt.Errorf("secret %s: its ciphertext was made for %s: set it again", n, sealedAs)
	}
	v := Value(c.Value)
	if err := v.Validate(); err != nil {
		return "", fmt.Errorf("secret %s: %w", n, err)
	}
	return v, nil
}

func decrypt(sealed []byte, ids ...age.Identity) ([]byte, error) {
	if len(sealed) > MaxSealed {
		return nil, fmt.Errorf("it has %d bytes: at most %d are allowed", len(sealed), MaxSealed)
	}
	if n := recipientsOf(sealed); n > MaxRecipients {
		return nil, fmt.Errorf("it is encrypted to %d recipients: at most %d are allowed", n, MaxRecipients)
	}
	r, err := age.Decrypt(bytes.NewReader(sealed), ids...)
	var none *age.NoIdentityMatchError
	if errors.As(err, &none) {
		return nil, errors.New("none of this process's identities opens it: it was encrypted to another key")
	}
	if err != nil {
		return nil, errors.New("it is not encrypted with age, or damaged")
	}
	plain, err := io.ReadAll(r)
	if err != nil {
		return nil, errors.New("it is damaged")
	}
	return plain, nil
}
