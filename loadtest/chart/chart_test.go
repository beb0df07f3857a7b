package chart

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTicks(t *testing.T) {
	texts := func(list []Mark) (out []string) {
		for _, m := range list {
			out = append(out, m.Text)
		}
		return out
	}
	require.Equal(t, []string{"0", "2", "4", "6", "8", "10", "12"}, texts(linearTicks(11)))
	require.Equal(t, []string{"0", "5000", "10k", "15k", "20k", "25k", "30k"}, texts(linearTicks(29_000)))
	require.Equal(t, []string{"0.5", "1", "2", "5", "10"}, texts(logTicks(0.6, 9)))
	require.Equal(t, []string{"1", "2"}, texts(logTicks(1, 1)))
}
