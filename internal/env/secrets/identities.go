package secrets

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"filippo.io/age"
)

// maxKeyFile is the largest file of identities, bytes.
const maxKeyFile = 64 << 10

// Identities are the private keys of a process, at least one. They never change. The recipient of the first one is the
// one to encrypt to. The others open what was encrypted before a rotation.
type Identities struct {
	all        []age.Identity
	recipients []string
}

// String has only what is public.
func (ids *Identities) String() string { return "identities of " + strings.Join(ids.recipients, ", ") }

// Format hides the private keys from every verb of fmt.
func (ids *Identities) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, ids.String()) }

// Recipient is the public key to encrypt to.
func (ids *Identities) Recipient() string { return ids.recipients[0] }

// Recipients are the public keys of all identities, in the order of the file.
func (ids *Identities) Recipients() []string { return append([]string(nil), ids.recipients...) }

// Load reads a file of identities, as age-keygen writes it. It returns an error when people other than its owner
// may write the file: they could add an identity of their own. warning is not empty when they may read it. That is
// no error, because Kubernetes mounts secrets readable for all users of the container.
func Load(path string) (ids *Identities, warning string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, "", fmt.Errorf("secrets key: %w", err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, "", fmt.Errorf("secrets key: %w", err)
	}
	switch mode := info.Mode(); {
	case !mode.IsRegular():
		return nil, "", fmt.Errorf("secrets key %s is not a file", path)
	case mode.Perm()&0o022 != 0:
		return nil, "", fmt.Errorf("secrets key %s may be written by others (mode %04o): chmod 600 it, and check what is in it", path, mode.Perm())
	case mode.Perm()&0o004 != 0:
		warning = fmt.Sprintf("secrets key %s may be read by everybody on this machine (mode %04o): chmod 600 it", path, mode.Perm())
	}
	text, err := io.ReadAll(io.LimitReader(f, maxKeyFile+1))
	if err != nil {
		return nil, "", fmt.Errorf("secrets key %s: %w", path, err)
	}
	if ids, err = ParseIdentities(text); err != nil {
		return nil, "", fmt.Errorf("secrets key %s: %w", path, err)
	}
	return ids, warning, nil
}

// ParseIdentities reads identities, one a line. Empty lines, and lines that begin with #, are skipped. The error names
// the line and does not quote it.
func ParseIdentities(text []byte) (*Identities, error) {
	if len(text) > maxKeyFile {
		return nil, fmt.Errorf("it has more than %d bytes", maxKeyFile)
	}
	ids := &Identities{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, maxKeyFile+1)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		// Only this kind: age refuses to encrypt to different kinds at once, and its older commands know no other.
		id, err := age.ParseX25519Identity(line)
		if err != nil {
			return nil, fmt.Errorf("line %d is no age identity: it is AGE-SECRET-KEY-1…, as age-keygen and 'pinwheel secrets keygen' make it", n)
		}
		ids.all = append(ids.all, id)
		ids.recipients = append(ids.recipients, id.Recipient().String())
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(ids.all) == 0 {
		return nil, errors.New("it has no identity: 'pinwheel secrets keygen FILE' makes a file with one")
	}
	return ids, nil
}

// Create makes a new identity and writes it to a new file that only its owner may read. It never replaces a file. It
// returns the recipient.
func Create(path string) (recipient string, err error) {
	id, err := age.GenerateX25519Identity()
	if err != nil {
		return "", err
	}
	recipient = id.Recipient().String()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("%s is there already: a key that is lost cannot be made again, so it is not replaced", path)
	}
	if err != nil {
		return "", err
	}
	// The text is that of age-keygen.
	_, err = fmt.Fprintf(f, "# created: %s\n# public key: %s\n%s\n", time.Now().UTC().Format(time.RFC3339), recipient, id)
	err = errors.Join(err, f.Sync(), f.Close())
	return recipient, err
}

// Newest reports whether a ciphertext is encrypted to the first identity, and to no other recipient.
func (ids *Identities) Newest(sealed []byte) bool {
	_, err := decrypt(sealed, ids.all[0])
	return err == nil && recipientsOf(sealed) == 1
}

// recipientsOf counts the recipients in the header of a ciphertext: each has a line that begins with "->", and a line
// that begins with "---" ends the header. It decrypts nothing.
func recipientsOf(sealed []byte) (n int) {
	for line := range bytes.Lines(sealed) {
		switch {
		case bytes.HasPrefix(line, []byte("---")):
			return n
		case bytes.HasPrefix(line, []byte("->")):
			n++
		}
	}
	return n
}

// OpenedBy returns the recipients among ids for which a ciphertext is encrypted.
func (ids *Identities) OpenedBy(sealed []byte) (recipients []string) {
	for i, id := range ids.all {
		if _, err := decrypt(sealed, id); err == nil {
			recipients = append(recipients, ids.recipients[i])
		}
	}
	return recipients
}
