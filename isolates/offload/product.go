package offload

import (
	"strings"

	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// Product is the result of a Job: bytes, a list of bytes, a boolean, or an error.
type Product struct {
	bytes []byte
	list  [][]byte
	is    bool
	kind  productKind
	err   error
}

type productKind int

const (
	productBytes productKind = iota
	productList
	productBool
)

// Bytes returns a product of bytes.
func Bytes(b []byte, err error) Product { return Product{bytes: b, err: err} }

// List returns a product of several byte slices.
func List(err error, list ...[]byte) Product { return Product{list: list, kind: productList, err: err} }

// Bool returns a product of true or false.
func Bool(is bool, err error) Product { return Product{is: is, kind: productBool, err: err} }

// Failed returns the product of an operation that failed.
func Failed(err error) Product { return Product{err: err} }

// Answer encodes the product as an answer to host.ask. Only an error is a string.
func (p Product) Answer() []byte {
	switch {
	case p.err != nil:
		return v8x.AnswerString(inWords(p.err))
	case p.kind == productList:
		return v8x.AnswerList(p.list...)
	case p.kind == productBool:
		return v8x.AnswerBool(p.is)
	}
	return v8x.AnswerBytes(p.bytes)
}

// Deliver adds the product to a call of the entry function, and returns the body that goes with the call.
func (p Product) Deliver(call *v8x.Call) (body []byte) {
	if p.err == nil && p.kind == productBytes {
		call.Body()
		return p.bytes
	}
	call.Raw(p.Answer())
	return nil
}

// inWords returns why an operation failed, without the words of Go's libraries of cryptography.
func inWords(err error) string {
	text := err.Error()
	switch {
	case strings.HasPrefix(text, "crypto/rsa: message too long"):
		return "the data is too long for the key"
	case strings.Contains(text, "low order point"):
		return "the public key is of small order"
	}
	for _, prefix := range [...]string{"asn1: ", "x509: ", "crypto/", "rsa: ", "ed25519: ", "ecdsa: ", "ecdh: ", "math/"} {
		if strings.HasPrefix(text, prefix) {
			return "the key is not well-formed"
		}
	}
	return text
}
