package compat_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/test/fleettest"
)

// examples is the directory of the examples.
const examples = "../../../examples"

// start runs a fleet with the example, deployed for dev as pinwheel dev would.
func start(t *testing.T, file string, args ...string) *fleettest.Fleet {
	t.Helper()
	f := fleettest.Start(t)
	f.Deploy(t, append([]string{examples + "/" + file, "--owner", "dev"}, args...)...)
	return f
}

// success decodes the data of the reply to a task or scheduled event.
func success(t *testing.T, r fleettest.Result, data any) {
	t.Helper()
	require.Zero(t, r.Code, "%s\n%s", r.Out, r.Err)
	var result struct {
		Success bool
		Data    json.RawMessage
	}
	require.NoError(t, json.Unmarshal([]byte(r.Out), &result), r.Out)
	require.True(t, result.Success)
	require.NoError(t, json.Unmarshal(result.Data, data), r.Out)
}

func TestHello(t *testing.T) {
	t.Parallel()
	f := start(t, "hello.js")
	r := f.Pinwheel("send", "fetch", "dev/hello", "--data", `{"name":"Ada"}`)
	require.Equal(t, `{"hello":"Ada"}`, r.Out, r.Err)
	require.Equal(t, `{"hello":"world"}`, f.Pinwheel("send", "fetch", "dev/hello").Out)
	r = f.Pinwheel("send", "fetch", "dev/hello", "--data", `{`)
	require.Equal(t, 1, r.Code)
	require.Equal(t, `{"error":"the body is not JSON"}`, r.Out)

	// A plain request of any client works too.
	m, err := f.NC.Request("pinwheel.call.fetch.dev.hello", []byte(`{"name":"Grace"}`), time.Minute)
	require.NoError(t, err)
	require.Equal(t, `{"hello":"Grace"}`, string(m.Data))
	require.Equal(t, "200", m.Header.Get("Http-Status"))
}

func TestJSONAPI(t *testing.T) {
	t.Parallel()
	f := start(t, "json-api.ts")
	for _, c := range []struct {
		args []string
		code int
		out  string // JSON
		err  string
	}{
		{[]string{"--path", "/units"}, 0, `{"length":["m","km","ft","mi"],"mass":["kg","lb","oz"],"temperature":["K","C","F"]}`, "HTTP 200 OK"},
		{[]string{"--path", "/units/km/mi?value=42.195"}, 0, `{"value":42.195,"from":"km","to":"mi","result":26.218757456}`, "HTTP 200"},
		{[]string{"--path", "/units/F/C?value=212"}, 0, `{"value":212,"from":"F","to":"C","result":100}`, "HTTP 200"},
		{[]string{"--path", "/units/F/kg?value=212"}, 1, `{"error":"F is a temperature and kg is a mass"}`, "HTTP 422"},
		{[]string{"--path", "/units/constructor/kg?value=1"}, 1, `{"error":"unknown unit constructor"}`, "HTTP 404"},
		{[]string{"--path", "/units/kg/lb?value=much"}, 1, `{"error":"value must be a number","fields":{"value":"much"}}`, "HTTP 400"},
		{[]string{"--path", "/units", "--method", "DELETE"}, 1, `{"error":"DELETE is not allowed here"}`, "allow: GET"},
		{[]string{"--path", "/nothing"}, 1, `{"error":"there is nothing at /nothing"}`, "HTTP 404"},
		{[]string{"--path", "/loans", "--data", "{"}, 1, `{"error":"the body is not JSON"}`, "HTTP 400"},
		{[]string{"--path", "/loans", "--data", `{"principal":0,"annualRate":3,"months":1.5}`}, 1,
			`{"error":"the loan is not valid","fields":{"principal":"must be a number from 1 to 1000000000","months":"must be a whole number"}}`, "HTTP 422"},
	} {
		r := f.Pinwheel(append([]string{"send", "fetch", "dev/json-api"}, c.args...)...)
		require.Equal(t, c.code, r.Code, "%q: %s", c.args, r.Err)
		require.JSONEq(t, c.out, r.Out, "%q", c.args)
		require.Contains(t, r.Err, c.err, "%q", c.args)
	}
}

func TestALoanIsPaidBackToTheCent(t *testing.T) {
	t.Parallel()
	f := start(t, "json-api.ts")
	r := f.Pinwheel("send", "fetch", "dev/json-api", "--path", "/loans", "--data",
		`{"principal":250000,"annualRate":3.6,"months":360}`)
	require.Zero(t, r.Code, r.Err)
	var loan struct {
		Payment, Total, Interest float64
		Schedule                 []struct{ Payment, Interest, Principal, Balance float64 }
	}
	require.NoError(t, json.Unmarshal([]byte(r.Out), &loan))
	rate := 0.036 / 12
	require.InDelta(t, 250000*rate/(1-math.Pow(1+rate, -360)), loan.Payment, 0.005)
	require.Len(t, loan.Schedule, 360)
	paid, repaid := 0.0, 0.0
	for _, p := range loan.Schedule {
		require.InDelta(t, p.Payment, p.Interest+p.Principal, 1e-6)
		paid, repaid = paid+p.Payment, repaid+p.Principal
	}
	require.InDelta(t, 250000, repaid, 1e-4)
	require.InDelta(t, paid, loan.Total, 1e-4)
	require.InDelta(t, paid-250000, loan.Interest, 1e-4)
	require.Zero(t, loan.Schedule[359].Balance)
}

func sign(secret, body string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body))
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

func TestWebhook(t *testing.T) {
	t.Parallel()
	key := filepath.Join(t.TempDir(), "secrets.key")
	r := (&fleettest.Fleet{Config: fleettest.Config(t)}).Pinwheel("secrets", "keygen", key)
	require.Zero(t, r.Code, r.Err)
	f := fleettest.Start(t, func(c *config.Config) { c.SecretsKey = key })
	r = f.Pinwheel("deploy", examples+"/webhook.js", "--owner", "dev")
	require.Contains(t, r.Err, "'pinwheel secrets set dev/webhook WEBHOOK_SECRET' sets it")
	r = f.PinwheelWith("s3cret\n", "secrets", "set", "dev/webhook", "WEBHOOK_SECRET")
	require.Zero(t, r.Code, r.Err)
	f.Deploy(t, examples+"/webhook.js", "--owner", "dev")
	logs, err := f.NC.SubscribeSync("pinwheel.logs.dev.webhook")
	require.NoError(t, err)
	require.NoError(t, f.NC.Flush())
	body := `{"type":"order.paid","order":17}`
	post := func(body, signature string) fleettest.Result {
		return f.PinwheelWith(body, "send", "fetch", "dev/webhook", "--data-file", "-", "--header",
			"X-Signature-256="+signature, "--header", "X-Delivery-Id=d-1")
	}
	for _, signature := range []string{
		sign("guess", body), sign("s3cret", body+" "), "sha256=" + strings.Repeat("0", 64), "sha256=00", "md5=x",
		sign("s3cret", body)[:70],
	} {
		r := post(body, signature)
		require.Equal(t, 1, r.Code, signature)
		require.Contains(t, r.Err, "HTTP 401 ")
		require.JSONEq(t, `{"error":"the signature does not match the body"}`, r.Out)
	}
	r = f.Pinwheel("send", "fetch", "dev/webhook")
	require.Contains(t, r.Err, "HTTP 405 ")
	r = post("not JSON", sign("s3cret", "not JSON"))
	require.Contains(t, r.Err, "HTTP 400 ")

	tasks := watchTasks(t, f)
	r = post(body, sign("s3cret", body))
	require.Zero(t, r.Code, r.Err)
	require.Contains(t, r.Err, "HTTP 202 Accepted\n")
	require.JSONEq(t, `{"accepted":"d-1"}`, r.Out)

	// The task that the handler enqueued is stored, and runs.
	task, err := tasks.NextMsg(time.Minute)
	require.NoError(t, err)
	require.JSONEq(t, `{"id":"d-1","message":`+body+`}`, string(task.Data))
	m, err := logs.NextMsg(time.Minute)
	require.NoError(t, err)
	var line struct{ Level, Text string }
	require.NoError(t, json.Unmarshal(m.Data, &line))
	require.Equal(t, "info processing order.paid d-1, attempt 1", line.Level+" "+line.Text)
	require.Empty(t, f.Pinwheel("dead", "ls", "--json").Out)

	var done struct {
		ID, Type string
		Keys     []string
	}
	success(t, f.PinwheelWith(string(task.Data), "send", "task", "dev/webhook", "--data-file", "-"), &done)
	require.Equal(t, "d-1 order.paid order,type", done.ID+" "+done.Type+" "+strings.Join(done.Keys, ","))
}

// watchTasks subscribes to what is published for the webhook's task handler.
func watchTasks(t *testing.T, f *fleettest.Fleet) *nats.Subscription {
	t.Helper()
	sub, err := f.NC.SubscribeSync("pinwheel.events.task.dev.webhook")
	require.NoError(t, err)
	require.NoError(t, f.NC.Flush())
	return sub
}

// column is csv-report's description of a column.
type column struct {
	Name, Type          string
	Count, Empty        int
	Distinct, Longest   int     // text
	Sum, Mean, Min, Max float64 // number
}

// sales makes a CSV file with all features of RFC 4180.
func sales(r *rand.Rand, rows int) ([][]string, string) {
	notes := []string{"", "plain", "a, b", `he said "no"`, "two\nlines", "CR\r\nLF", `"`, `""`, "Zürich, €5", "🎡, spins",
		" spaces ", ","}
	records := [][]string{{"id", "country", "amount", "units, sold", "note"}}
	for i := range rows {
		amount := strconv.FormatFloat(float64(r.IntN(200_000)-50_000)/100, 'f', 2, 64)
		if r.IntN(50) == 0 {
			amount = ""
		}
		records = append(records, []string{
			fmt.Sprintf("o-%d", i), []string{"CH", "DE", "FR", "IT"}[r.IntN(4)], amount, strconv.Itoa(r.IntN(1000)),
			notes[r.IntN(len(notes))],
		})
	}
	var b strings.Builder
	for _, record := range records {
		for i, field := range record {
			if i > 0 {
				b.WriteByte(',')
			}
			if strings.ContainsAny(field, "\",\r\n") || r.IntN(10) == 0 {
				field = `"` + strings.ReplaceAll(field, `"`, `""`) + `"`
			}
			b.WriteString(field)
		}
		b.WriteString([]string{"\n", "\r\n"}[r.IntN(2)])
	}
	return records, b.String()
}

// aggregate is the same computation as the example's, on the records instead of the text.
func aggregate(records [][]string, i int) column {
	c := column{Name: records[0][i], Type: "number", Min: math.Inf(1), Max: math.Inf(-1)}
	seen := map[string]bool{}
	for _, record := range records[1:] {
		v := record[i]
		if strings.TrimSpace(v) == "" {
			c.Empty++
			continue
		}
		c.Count++
		seen[v] = true
		c.Longest = max(c.Longest, len(utf16.Encode([]rune(v))))
		n, err := strconv.ParseFloat(v, 64)
		if err != nil {
			c.Type = "text"
		}
		c.Sum, c.Min, c.Max = c.Sum+n, min(c.Min, n), max(c.Max, n)
	}
	if c.Type == "text" {
		return column{Name: c.Name, Type: c.Type, Count: c.Count, Empty: c.Empty, Distinct: len(seen), Longest: c.Longest}
	}
	c.Mean, c.Longest = c.Sum/float64(c.Count), 0
	return c
}

func TestCSVReport(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	records, text := sales(rand.New(rand.NewPCG(seed, 1)), 5000)
	parsed, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	require.NoError(t, err, "the file is one that others read too")
	require.Len(t, parsed, len(records))
	path := filepath.Join(t.TempDir(), "sales.csv")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))

	f := start(t, "csv-report.js")
	var report struct {
		Rows    int
		Columns []column
	}
	success(t, f.Pinwheel("send", "task", "dev/csv-report", "--data-file", path, "--content-type", "text/csv"), &report)
	require.Equal(t, 5000, report.Rows)
	require.Len(t, report.Columns, len(records[0]))
	for i, got := range report.Columns {
		want := aggregate(records, i)
		require.InDelta(t, want.Sum, got.Sum, 1e-6, want.Name)
		require.InDelta(t, want.Mean, got.Mean, 1e-6, want.Name)
		want.Sum, want.Mean = got.Sum, got.Mean
		require.Equal(t, want, got)
	}
}

func TestCSVReportRefusesWhatIsNoCSV(t *testing.T) {
	t.Parallel()
	f := start(t, "csv-report.js")
	for text, want := range map[string]string{
		"":               "the file is empty: its first line names the columns",
		"a,b\n1\n":       "line 2: 1 fields, where the first line has 2",
		"a\n\"b\nc":      "line 2: the quote that is opened here is never closed",
		"a\n\"b\nc\"d\n": "line 3: a comma or the end of the line must follow a closing quote",
		"a\nb\"c\n":      "line 2: a quote in a field without quotes",
	} {
		r := f.PinwheelWith(text, "send", "task", "dev/csv-report", "--data-file", "-", "--content-type", "text/csv")
		require.Equal(t, 1, r.Code, "%q: %s", text, r.Out)
		require.Contains(t, r.Err, ", attempt 1,", "it is not tried again")
		require.Contains(t, r.Out, want, "%q", text)
	}
}

func TestDailyReport(t *testing.T) {
	t.Parallel()
	f := start(t, "daily-report.js")
	type report struct {
		ID, From, To, Week                           string
		Weekday, DayOfYear, Quarter, DaysLeftInMonth int
	}
	for _, tick := range []string{"2026-01-01T01:00:00Z", "2025-12-30T00:00:00Z", "2024-03-01T23:59:59Z",
		"2021-01-04T05:00:00+02:00", "2027-01-01T00:00:00Z"} {
		at, err := time.Parse(time.RFC3339, tick)
		require.NoError(t, err)
		end := at.UTC().Truncate(24 * time.Hour)
		day := end.AddDate(0, 0, -1)
		year, week := day.ISOWeek()
		weekday := int(day.Weekday())
		if weekday == 0 {
			weekday = 7
		}
		var got report
		success(t, f.Pinwheel("send", "scheduled", "dev/daily-report", "--time", tick), &got)
		require.Equal(t, report{
			ID: "daily-" + day.Format(time.DateOnly), From: day.Format("2006-01-02T15:04:05.000Z"),
			To:   end.Format("2006-01-02T15:04:05.000Z"),
			Week: fmt.Sprintf("%d-W%02d", year, week), Weekday: weekday, DayOfYear: day.YearDay(),
			Quarter:         (int(day.Month())-1)/3 + 1,
			DaysLeftInMonth: time.Date(day.Year(), day.Month()+1, 0, 0, 0, 0, 0, time.UTC).Day() - day.Day(),
		}, got, tick)
	}
}

func TestRateLimit(t *testing.T) {
	t.Parallel()
	f := start(t, "rate-limit.js")
	require.Contains(t, f.Pinwheel("workers", "show", "dev/rate-limit").Out, "persistent")
	call := func(client string) int {
		m := nats.NewMsg("pinwheel.call.fetch.dev.rate-limit")
		m.Header.Set("Http-Header-X-Client", client)
		reply, err := f.NC.RequestMsg(m, time.Minute)
		require.NoError(t, err)
		status, err := strconv.Atoi(reply.Header.Get("Http-Status"))
		require.NoError(t, err)
		return status
	}
	// All threads share the state, so it does not matter which thread takes an event.
	for n := 0; call("greedy") != 429; n++ {
		require.Less(t, n, 1000)
	}
	require.Equal(t, 200, call("modest"))
}

func TestDigest(t *testing.T) {
	t.Parallel()
	f := start(t, "digest.js")
	mails, err := f.NC.SubscribeSync("pinwheel.events.task.dev.mailer")
	require.NoError(t, err)
	lines, sent := map[string][]string{}, 0
	for i := range 9 {
		user := []string{"ada", "bob", "bob"}[i%3]
		data := fmt.Sprintf(`{"user":%q,"text":"%d"}`, user, i)
		if i == 8 {
			data = `{"text":"for nobody"}`
		}
		require.NoError(t, f.NC.Publish("pinwheel.events.task.dev.digest", []byte(data)))
	}
	for got := 0; got < 8; sent++ {
		m, err := mails.NextMsg(time.Minute)
		require.NoError(t, err)
		var mail struct {
			To    string
			Lines []string
		}
		require.NoError(t, json.Unmarshal(m.Data, &mail))
		lines[mail.To] = append(lines[mail.To], mail.Lines...)
		got += len(mail.Lines)
	}
	require.ElementsMatch(t, []string{"0", "3", "6"}, lines["ada"])
	require.ElementsMatch(t, []string{"1", "2", "4", "5", "7"}, lines["bob"])
	t.Logf("%d mails", sent)
}
