package compat_test

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha3"
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
)

func testZod(t *testing.T, f *fleet) {
	w := f.deploy(t, "zod.ts")
	post := func(body string) answer { return w.fetch(t, "POST", "/", body) }
	a := post(`{"name":" Ada ","email":"ada@example.com","age":"36","born":"1815-12-10","tags":["a","b","a"],"contact":{"by":"phone","number":"+41441234567"},"site":"https://example.com/ä"}`)
	require.Equal(t, 200, a.status, a.body)
	require.JSONEq(t,
		`{"name":"Ada","email":"ada@example.com","age":36,"born":"1815-12-10T00:00:00.000Z","role":"user","tags":["a","b"],
		"contact":{"by":"phone","number":"+41441234567"},"site":"https://example.com/ä"}`, a.body)
	a = post(`{"name":"A","email":"nobody","age":-1,"site":"no url","address":{"street":"","zip":"12"},"contact":{"by":"fax"},"more":1}`)
	require.Equal(t, 422, a.status)
	var got struct {
		Issues []string
		Pretty string
	}
	require.NoError(t, json.Unmarshal([]byte(a.body), &got))
	require.Equal(t, []string{
		"name: Too small: expected string to have >=2 characters", "email: Invalid email address", "age: Too small: expected number to be >0",
		"site: Invalid URL", "address.street: Too small: expected string to have >=1 characters", "address.zip: four digits",
		"contact.by: Invalid discriminator value. Expected 'mail' | 'phone'", `: Unrecognized key: "more"`,
	}, got.Issues)
	require.Contains(t, got.Pretty, "→ at address.zip")
	require.Contains(t, post(`{"name":"Eve","email":"eve@other.example","role":"admin"}`).body, "email: admins are of example.com")
	var schema struct {
		Type       string
		Properties map[string]map[string]any
		Required   []string
	}
	require.NoError(t, json.Unmarshal([]byte(w.get(t, "/").body), &schema))
	require.Equal(t, []string{"street", "zip"}, schema.Required)
	require.Equal(t, `^\d{4}$`, schema.Properties["zip"]["pattern"])
}

func testIDs(t *testing.T, f *fleet) {
	w := f.deploy(t, "ids.js")
	var got struct{ Nanoid, UUID map[string]any }
	w.task(t, nil, &got)
	require.Regexp(t, `^[0-9a-f]{12}$`, got.Nanoid["hex"])
	delete(got.Nanoid, "hex")
	require.Equal(t, map[string]any{"distinct": 2000.0, "shape": true, "short": 5.0}, got.Nanoid)
	require.Equal(t, map[string]any{
		"v1": 1.0, "v4": 4.0, "v6": 6.0, "distinct": 500.0, "sorted": true, "valid": true, "invalid": false,
		"v3": "9125a8dc-52ee-365b-a5aa-81b0b3681cf6", "v5": "fdda765f-fc57-5604-a269-52a7df8164ec",
		"parsed": []any{110.0, 192.0, 189.0, 127.0, 17.0, 192.0, 67.0, 218.0, 151.0, 94.0, 42.0, 138.0, 217.0, 235.0, 174.0,
			11.0},
		"text": "ffffffff-ffff-ffff-ffff-ffffffffffff",
	}, got.UUID)
}

func testHashes(t *testing.T, f *fleet) {
	w := f.deploy(t, "hashes.js")
	const text = "the quick brown føx"
	var got map[string]any
	w.task(t, map[string]any{"text": text}, &got)
	data, salt := []byte(text), []byte("salt")
	s1, s256, s384, s512, s3 := sha1.Sum(data), sha256.Sum256(data), sha512.Sum384(data), sha512.Sum512(data), sha3.Sum256(
		data)
	mac := hmac.New(sha256.New, salt)
	mac.Write(data)
	derived, err := hkdf.Key(sha256.New, data, salt, "info", 42)
	require.NoError(t, err)
	stretched, err := pbkdf2.Key(sha256.New, text, salt, 10, 32)
	require.NoError(t, err)
	for name, want := range map[string][]byte{
		"sha1": s1[:], "sha256": s256[:], "sha384": s384[:], "sha512": s512[:], "sha3_256": s3[:],
		"shake256": sha3.SumSHAKE256(data, 20),
		"hmac":     mac.Sum(nil), "hkdf": derived, "pbkdf2": stretched, "pbkdf2Async": stretched, "webSha256": s256[:],
		"webHmac": mac.Sum(nil),
	} {
		require.Equal(t, hex.EncodeToString(want), got[name], name)
	}
	require.Equal(t, got["blake3"], got["blake3Stepped"])
	require.Equal(t, "00ff7f", got["round"])
	for name, size := range map[string]int{"ripemd160": 20, "keccak_256": 32, "blake2b": 64, "blake3": 32, "scrypt": 32,
		"argon2id": 32} {
		require.Len(t, got[name], 2*size, name)
	}
}

func testCSV(t *testing.T, f *fleet) {
	w := f.deploy(t, "csv.js")
	r := w.request(events.Task)
	r.Body, r.ContentType = []byte("id,name,ok\n1,\"a, \"\"b\"\"\",true\n\n2.5,\"two\nlines €\",false\nx,short\n"), "text/csv"
	var got struct {
		Data      []map[string]any
		Fields    []string
		Errors    []struct{ Code string }
		Steps     []int
		Delimiter string
		Back, TSV string
	}
	w.run(t, r, &got)
	require.Equal(t, []map[string]any{
		{"id": 1.0, "name": `a, "b"`, "ok": true}, {"id": 2.5, "name": "two\nlines €", "ok": false},
		{"id": "x", "name": "short"},
	}, got.Data)
	require.Equal(t, []string{"id", "name", "ok"}, got.Fields)
	require.Len(t, got.Errors, 1)
	require.Equal(t, "TooFewFields", got.Errors[0].Code)
	require.Equal(t, []int{3, 3, 1, 3, 2, 1}, got.Steps)
	require.Equal(t, ";", got.Delimiter)
	require.Equal(t, "id,name,ok\n1,\"a, \"\"b\"\"\",true\n2.5,\"two\nlines €\",false\nx,short,", got.Back)
	require.Equal(t, "a\t\"b\tc\"\r\n1\t\"say \"\"x\"\"\"", got.TSV)
}

func testDates(t *testing.T, f *fleet) {
	w := f.deploy(t, "dates.js")
	r := w.request(events.Scheduled)
	r.ScheduledTime = time.Date(2024, 2, 29, 13, 5, 9, 0, time.UTC)
	var got struct {
		DateFns, Dayjs map[string]any
	}
	w.run(t, r, &got)
	require.Equal(t, map[string]any{
		"format": "2024-02-29T13:05 +00:00", "german": "Donnerstag, 29. Februar 2024", "iso": "2024-02-29",
		"business": "2024-03-07", "days": 1.0,
		"distance": "about 2 months ago", "parsed": float64(time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC).UnixMilli()),
		"duration": map[string]any{"days": 1.0, "hours": 1.0, "minutes": 1.0, "seconds": 1.0},
	}, got.DateFns)
	require.Equal(t, map[string]any{
		"format": "2024-02-29 13:05:09 +00:00", "zurich": "2024-02-29 14:05 +01:00", "french": "jeudi 29 février",
		"week": 9.0,
		"from": "in 3 days", "iso": "P1DT1H1M1S", "invalid": false,
	}, got.Dayjs)
}
