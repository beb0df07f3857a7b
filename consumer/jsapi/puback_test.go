package jsapi

import (
	"errors"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
)

func TestReadAck(t *testing.T) {
	for data, want := range map[string]uint64{
		`{"stream":"S", "seq":12}`:                                 12,
		`{"stream":"S","seq":12}`:                                  12,
		`{"stream":"S","domain":"d","seq":7}`:                      7,
		`{"stream":"","seq":12}`:                                   0,
		`{"stream":"S", "domain":"d", "seq":7}`:                    7,
		`{"stream":"S", "seq":8,"duplicate": true}`:                8,
		`{"stream":"S", "seq":18446744073709551615}`:               18446744073709551615,
		`{"error":{"code":503,"err_code":1},"stream":"S","seq":0}`: 0,
		`{"stream":"", "seq":x}`:                                   0,
		`{"stream":"S", "seq":-1}`:                                 0,
		``:                                                         0,
	} {
		ack, err := ReadAck(&nats.Msg{Data: []byte(data)}, nil)
		require.Equal(t, want, ack.Seq, data)
		require.Equal(t, want == 0, err != nil, data)
	}
	_, err := ReadAck(nil, ErrNoAnswer)
	require.True(t, errors.Is(err, ErrNoAnswer))
}
