package manifest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// SchemaID names the schema. It is no address to fetch it from.
const SchemaID = "https://pinwheel.run/schemas/manifest.json"

// Schema is a JSON Schema (draft 2020-12) of Pinwheel's own manifest. It is made from the Go types, so it has the keys
// and the types that Parse has. Bounds that depend on each other are Parse's alone.
func Schema() []byte {
	s := schemaOf("", reflect.TypeFor[native]())
	s["$schema"], s["$id"] = "https://json-schema.org/draft/2020-12/schema", SchemaID
	s["title"] = "Manifest of a Pinwheel worker"
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		panic(err) // of maps and strings only
	}
	return append(b, '\n')
}

type schema map[string]any

// allowed are the values of fields that have only some.
func allowed(path string) []string {
	switch path {
	case "mode":
		return texts(workers.Modes[:])
	case "binaryType":
		return texts(workers.BinaryTypes[:])
	case "http.delivery":
		return texts(workers.Deliveries[:])
	case "http.log.level":
		return texts(workers.RequestLevels[:])
	case "assets.notFound":
		return []string{string(workers.NotFoundNone), string(workers.NotFoundPage), string(workers.NotFoundSPA)}
	case "assets.html":
		return []string{string(workers.HTMLAuto), string(workers.HTMLForce), string(workers.HTMLDrop),
			string(workers.HTMLNone)}
	case "schedules[].overlap":
		return []string{string(events.OverlapAllow), string(events.OverlapForbid), string(events.OverlapReplace)}
	case "schedules[].misfire":
		return []string{string(workers.MisfireSkip), string(workers.MisfireOnce), string(workers.MisfireAll)}
	}
	return nil
}

func texts[T ~string](values []T) []string {
	list := make([]string, len(values))
	for i, v := range values {
		list[i] = string(v)
	}
	return list
}

func schemaOf(path string, t reflect.Type) schema {
	switch {
	case t == reflect.TypeFor[workers.Millis](), t == reflect.TypeFor[*workers.Millis]():
		least := 1
		if t.Kind() == reflect.Pointer {
			least = 0
		}
		return schema{"anyOf": []schema{
			{"type": "integer", "minimum": least, "maximum": maxDuration.Milliseconds()},
			{"type": "string", "pattern": durationText.String()},
		}, "description": fmt.Sprintf("Milliseconds, or %s: %s.", durationShape, durationMore)}
	case t == reflect.TypeFor[workers.Bytes]():
		return schema{"anyOf": []schema{
			{"type": "integer", "minimum": 1}, {"type": "string", "pattern": sizePattern},
		}, "description": "Bytes, or " + sizeShape + ": " + sizeMore + "."}
	case t == reflect.TypeFor[workers.PublicPaths]():
		paths := schemaOf(path+"[]", t.Elem())
		return schema{"anyOf": []schema{paths, {"type": "object", "additionalProperties": paths}}}
	case t == reflect.TypeFor[workers.CORS]():
		return schema{"anyOf": []schema{{"type": "string"}, {"type": "array", "items": schema{"type": "string"}},
			objectSchema(path, t)}}
	case t == reflect.TypeFor[workers.Start]():
		return schema{"anyOf": []schema{{"type": "string", "enum": []string{workers.StartNew, workers.StartAll}},
			objectSchema(path, t)}}
	case t == reflect.TypeFor[workers.RequestLog]():
		return schema{"anyOf": []schema{schemaOf(path+".level", reflect.TypeFor[workers.RequestLevel]()),
			objectSchema(path, t)}}
	case t.Kind() == reflect.Pointer && t.Elem().Kind() != reflect.Float64:
		return schemaOf(path, t.Elem())
	case t.Kind() == reflect.Struct:
		return objectSchema(path, t)
	case t.Kind() == reflect.Map && path == "vars":
		return schema{"type": "object", "additionalProperties": schema{"type": []string{"string", "object", "array"}}}
	case t.Kind() == reflect.Map:
		return schema{"type": "object", "additionalProperties": schemaOf(path+".*", t.Elem())}
	case t.Kind() == reflect.Slice:
		return schema{"type": "array", "items": schemaOf(path+"[]", t.Elem())}
	case t.Kind() == reflect.Pointer: // a number that may be 0
		return schema{"type": "number"}
	case t.Kind() == reflect.Bool:
		return schema{"type": "boolean"}
	case t.Kind() == reflect.Float64:
		return schema{"type": "number", "exclusiveMinimum": 0}
	case t.Kind() == reflect.String:
		if values := allowed(path); values != nil {
			return schema{"type": "string", "enum": values}
		}
		return schema{"type": "string"}
	}
	return schema{"type": "integer", "minimum": 1}
}

func objectSchema(path string, t reflect.Type) schema {
	properties := schema{}
	var add func(t reflect.Type)
	add = func(t reflect.Type) {
		for i := range t.NumField() {
			f := t.Field(i)
			switch {
			case f.Anonymous:
				add(f.Type)
				continue
			case f.Tag.Get("manifest") == "-":
				continue
			}
			full := jsonName(f)
			if path != "" {
				full = path + "." + full
			}
			properties[jsonName(f)] = schemaOf(full, f.Type)
		}
	}
	add(t)
	s := schema{"type": "object", "properties": properties, "additionalProperties": false}
	if slices.Contains([]string{"schedules[]"}, path) {
		s["required"] = []string{"cron"}
	}
	return s
}
