package secrets

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// sealedData is what SealData encrypts. It repeats the key, so that a ciphertext that was copied to another key is
// refused.
type sealedData struct {
	Format int    `json:"format"`
	Key    string `json:"key"`
	Data   []byte `json:"data"`
}

// SealData encrypts what the fleet itself keeps at a key of a bucket, to recipients (age1…), at least one. It is no
// secret of a worker, and Open refuses it.
func SealData(key string, data []byte, recipients ...string) ([]byte, error) {
	plain, err := json.Marshal(sealedData{contentFormat, key, data})
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", key, err)
	}
	return encrypt(key, plain, recipients)
}

// OpenData decrypts what SealData has encrypted for a key. The error says why it is refused, and quotes nothing that
// was decrypted.
func (ids *Identities) OpenData(key string, sealed []byte) ([]byte, error) {
	plain, err := decrypt(sealed, ids.all...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	var d sealedData
	dec := json.NewDecoder(bytes.NewReader(plain))
	dec.DisallowUnknownFields()
	if dec.Decode(&d) != nil || d.Format != contentFormat || dec.More() {
		return nil, fmt.Errorf("%s: %w", key, errNotOurs)
	}
	if d.Key != key {
		return nil, fmt.Errorf("%s: its ciphertext was made for another key", key)
	}
	return d.Data, nil
}
