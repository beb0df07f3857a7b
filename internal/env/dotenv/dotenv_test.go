package dotenv

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFilesAreReadAsDotenvReadsThem(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]map[string]string{
		"A=1\nB = two words \n":                 {"A": "1", "B": "two words"},
		"\ufeffA=1\r\nB=2\r\n":                  {"A": "1", "B": "2"},
		"# comment\n\n  export A=1 # why\n":     {"A": "1"},
		"A=pa$word ${HOME}":                     {"A": "pa$word ${HOME}"},
		"A='single # not a comment'":            {"A": "single # not a comment"},
		`A="two\nlines \"quoted\""`:             {"A": "two\nlines \\\"quoted\\\""},
		"A=`both ' and \"`":                     {"A": "both ' and \""},
		"A=\"first\nsecond\"\nB=2":              {"A": "first\nsecond", "B": "2"},
		"A='it''s'":                             {"A": "it''s"},
		"A=\nB=":                                {"A": "", "B": ""},
		"A=1\nA=2":                              {"A": "2"},
		"A: yaml":                               {"A": "yaml"},
		"A='open":                               {"A": "'open"},
		"A.b-c=1":                               {"A.b-c": "1"},
		"A=b=c":                                 {"A": "b=c"},
		"A=x#y":                                 {"A": "x"},
		"KEY=\"-----BEGIN-----\\nab\\n\" # pem": {"KEY": "-----BEGIN-----\nab\n"},
	} {
		got, err := Parse(text)
		require.NoError(t, err, "%q", text)
		require.Equal(t, want, got.Map(), "%q", text)
	}
}

func TestAFaultNamesItsLineAndQuotesNothing(t *testing.T) {
	t.Parallel()
	for text, line := range map[string]int{
		"A=1\ns3cret\n": 2, "A=\"a\nb\"\n\n=s3cret": 4, "A s3cret": 1, "s3cret:x": 1, strings.Repeat("x", MaxFile+1): 1,
	} {
		_, err := Parse(text)
		var wrong *Error
		require.ErrorAs(t, err, &wrong)
		require.Equal(t, line, wrong.Line, "%.20q", text)
		require.NotContains(t, err.Error(), "s3cret")
	}
}

func TestNamesInValuesAreReplaced(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]map[string]string{
		"HOST=h\nURL=http://$HOST:80/${HOST}":        {"HOST": "h", "URL": "http://h:80/h"},
		"A=$LATER\nLATER=1":                          {"A": "", "LATER": "1"},
		`A='pa\$word $5'`:                            {"A": "pa$word $5"},
		"A=1\nB=${A:-x}${N:-x}${N-y-z}${A:+q}${N+q}": {"A": "1", "B": "1xy-zq"},
		"A=$A":                          {"A": ""},
		"A='one\ntwo'\nB=\"[$A]\"":      {"A": "one\ntwo", "B": "[one\ntwo]"},
		"A=${} $ {A} $\nB=${A":          {"A": "${} $ {A} $", "B": "${A"},
		`A=x$$y`:                        {"A": "x$"},
		"PATH=$PATH:/bin\nHOME=${HOME}": {"PATH": ":/bin", "HOME": ""},
	} {
		got, err := Parse(text)
		require.NoError(t, err, "%q", text)
		require.NoError(t, got.Expand(), "%q", text)
		require.Equal(t, want, got.Map(), "%q", text)
	}
}

// A value may be large by few bytes of a file. dotenv-expand does not end for the last one.
func TestExpansionIsBounded(t *testing.T) {
	t.Parallel()
	laughs := "A0=s3cretlol\n"
	for i := range 40 {
		laughs += fmt.Sprintf("A%d=$A%d$A%d$A%d\n", i+1, i, i, i)
	}
	var many strings.Builder // each value is short, and all together take too much
	for i := range 20_000 {
		fmt.Fprintf(&many, "B%d=%s\n", i, strings.Repeat("$Z", 20))
	}
	for _, text := range []string{laughs, many.String(), "A='\\$A'\nB=x$A"} {
		got, err := Parse(text)
		require.NoError(t, err)
		err = got.Expand()
		require.ErrorContains(t, err, "too much, or for each other without end")
		require.NotContains(t, err.Error(), "s3cret")
	}
}

func FuzzParse(f *testing.F) {
	f.Add("A=1\nexport B='x' # y\n")
	f.Add("A=\"a\\\"\nb\"\r\nC: `d`")
	f.Fuzz(func(t *testing.T, text string) {
		values, err := Parse(text)
		if err != nil {
			return
		}
		_ = values.Expand()
		for name := range values.Map() {
			if err != nil || name == "" || strings.ContainsAny(name, " \n=") {
				t.Fatalf("name %q, error %v", name, err)
			}
		}
	})
}
