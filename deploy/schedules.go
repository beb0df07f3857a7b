package deploy

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/cron"
)

// schedules reads the array of a manifest.
func (p *manifestParser) schedules(into *[]events.Schedule) field {
	return func(path string) error {
		at := p.next()
		if tok, err := p.dec.Token(); err != nil {
			return p.syntax(err)
		} else if tok != json.Delim('[') {
			return p.fail(at, "%s is not a list in brackets", path)
		}
		*into = []events.Schedule{}
		for p.dec.More() {
			var s events.Schedule
			item := fmt.Sprintf("%s[%d]", path, len(*into))
			p.at[item] = p.next()
			if err := p.object(item, fields{
				"name": p.value("a string", &s.Name), "cron": p.value("a string", &s.Cron), "timeZone": p.value("a string", &s.TimeZone),
				"overlap": p.value("a string", &s.Overlap), "misfire": p.value("a string", &s.Misfire),
			}, nil); err != nil {
				return err
			}
			if s.Name == "" {
				s.Name = strconv.Itoa(len(*into) + 1)
			}
			*into = append(*into, s)
		}
		if _, err := p.dec.Token(); err != nil {
			return p.syntax(err)
		}
		return nil
	}
}

// checkSchedules returns an error that begins with the path of the field that is wrong.
func checkSchedules(list []events.Schedule) error {
	if len(list) > events.MaxSchedules {
		return fmt.Errorf("schedules has %d: at most %d are allowed", len(list), events.MaxSchedules)
	}
	for i, s := range list {
		err := s.Validate()
		if err == nil {
			_, err = cron.Parse(s.Cron, s.TimeZone)
		}
		if err != nil {
			return fmt.Errorf("schedules[%d].%w", i, err)
		}
		if j := slices.IndexFunc(list, func(o events.Schedule) bool { return o.Name == s.Name }); j < i {
			return fmt.Errorf("schedules[%d].name is %q: schedules[%d] has that name", i, s.Name, j)
		}
	}
	return nil
}

// checkTicked refuses schedules for which there is no handler.
func checkTicked(w *events.Worker) error {
	if len(w.Schedules) == 0 || slices.Contains(w.Handlers, events.Scheduled) {
		return nil
	}
	return &RefusedError{w.Target(), events.NewFailure(events.ReasonNoHandler,
		"the manifest has schedules, and the module has no scheduled handler", "    at "+handlerPosition(w))}
}
