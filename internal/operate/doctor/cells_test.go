package doctor

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// A fleet whose owners are in cells is told, and processes that disagree about it.
func TestCellsOfProcesses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		by   map[string]int
		want []Line
	}{
		{map[string]int{"shared": 3}, nil},
		{map[string]int{"own": 2}, []Line{{OK, "cells",
			"owners without a cell of their policy are in the one that PINWHEEL_CELL names: 2 × own", ""}}},
		{map[string]int{"shared": 1, "guests": 2}, []Line{{Warn, "cells",
			"owners without a cell of their policy are in other cells in some processes: 2 × guests, 1 × shared",
			"set PINWHEEL_CELL for all alike, once a rolling restart is over"}}},
	} {
		p := &checker{}
		(&cellsFound{by: c.by}).report(p)
		require.Equal(t, c.want, p.lines)
	}
}

// What cells lack, how they ended, and what waits for room is told of each process, as it reports it.
func TestCellsOfAProcess(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, says string
		want       []Line // without what to do
	}{
		{"an earlier release", `{}`, nil},
		{"none is wanted", `{"cell":"shared","cellAccount":{"confine":"off","most":100}}`, nil},
		{"none runs, and nothing is missing", `{"cellAccount":{"confine":"on","most":100,"probed":true}}`, nil},
		{"all is well", `{"cells":[{},{}],"cellAccount":{"confine":"on","most":100,"probed":true}}`,
			[]Line{{OK, "cells", "2 run, and are confined in all parts", ""}}},
		{"with cgroups", `{"cells":[{},{}],"cellAccount":{"confine":"on","most":100,"probed":true,"cgroups":true}}`,
			[]Line{{OK, "cells", "2 run, and are confined in all parts, with cgroups of their own", ""}}},
		{"without cgroups", `{"cells":[{}],"cellAccount":{"confine":"on","probed":true,"noCgroups":"not delegated"}}`,
			[]Line{
				{OK, "cells", "the cells of process n have no cgroups: not delegated", ""},
				{OK, "cells", "1 run, and are confined in all parts", ""},
			}},
		{"too much memory", `{"cellAccount":{"confine":"on","ends":[{"at":"2026-01-02T03:04:05Z","how":"memory","class":"guests"}]}}`,
			[]Line{{Warn, "cells", "cells of process n used more memory than they may in the last hour: 1 × guests", ""}}},
		{"a part is missing in one that runs", `{"cells":[{"unconfined":["files: no Landlock"]},{}],"cellAccount":{"confine":"on"}}`,
			[]Line{{Warn, "cells", "the cells of process n are not confined in all parts: files: no Landlock", ""}}},
		{"a part will be missing", `{"cellAccount":{"confine":"on","probed":true,"unconfined":["namespaces: no","files: no"]}}`,
			[]Line{{Warn, "cells", "the cells of process n are not confined in all parts: files: no; namespaces: no", ""}}},
		{"a part is required", `{"cellAccount":{"confine":"require","probed":true,"unconfined":["files: no"],"fault":"start a cell: no"}}`,
			[]Line{{Bad, "cells",
				"process n starts no cell, because its system refuses a part of the confinement: files: no", ""}}},
		{"off", `{"cellAccount":{"confine":"off","probed":true}}`,
			[]Line{{Warn, "cells", "the cells of process n are not confined (PINWHEEL_CELL_CONFINE=off)", ""}}},
		{"none starts", `{"cellAccount":{"confine":"on","probed":true,"fault":"start a cell: no memory"}}`,
			[]Line{{Bad, "cells", "the last cell of process n did not start: start a cell: no memory", ""}}},
		{"no room", `{"cells":[{"unconfined":[]}],"cellAccount":{"confine":"on","most":2,"waiting":["guests","own:acme"],"moreWaiting":3}}`,
			[]Line{
				{Warn, "cells", "process n has 1 of at most 2 cells, and no room or no memory for 5 more that are wanted: " +
					"guests, own:acme and 3 more", ""},
				{OK, "cells", "1 run, and are confined in all parts", ""},
			}},
		{"bad ends", `{"cellAccount":{"confine":"on","ends":[
			{"at":"2026-01-02T03:04:05Z","how":"died","class":"guests","why":"signal: killed"},
			{"at":"2026-01-02T03:04:06Z","how":"lie","class":"own:acme","owners":["acme"],"why":"a frame of kind 200"},
			{"at":"2026-01-02T03:04:07Z","how":"died","class":"guests","why":"signal: killed"},
			{"at":"2026-01-02T03:04:08Z","how":"start","class":"guests","why":"no memory"}]}}`,
			[]Line{
				{Bad, "cells", "a cell of process n was ended at 2026-01-02T03:04:06Z, because it sent what none sends: " +
					"cell own:acme, owners acme: a frame of kind 200", ""},
				{Warn, "cells", "cells of process n died in the last hour: 2 × guests", ""},
			}},
	} {
		var of cellsOf
		require.NoError(t, json.Unmarshal([]byte(c.says), &of), c.name)
		p, found := &checker{}, cellsFound{}
		found.take(p, "n", of)
		found.report(p)
		for i := range p.lines {
			require.Equal(t, p.lines[i].Level == OK, p.lines[i].Do == "", "%s: what to do", c.name)
			p.lines[i].Do = ""
		}
		require.Equal(t, c.want, p.lines, c.name)
	}
}
