// Package assets keeps what Pinwheel has in JetStream as this binary wants it: it makes what is missing, brings forward what
// differs, leaves alone what a newer binary has made, and says what differs, field by field.
package assets
