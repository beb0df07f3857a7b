package config

import (
	"fmt"
	"reflect"
	"strconv"
	"time"
)

// Default returns the configuration of an empty environment. Its values come from the default tags of Config.
func Default() Config {
	var c Config
	v := reflect.ValueOf(&c).Elem()
	for i := range v.NumField() {
		if text := v.Type().Field(i).Tag.Get("default"); text != "" {
			if err := setField(v.Field(i), text); err != nil {
				panic(fmt.Sprintf("default of %s: %v", v.Type().Field(i).Name, err)) // a mistake in a tag; every test finds it
			}
		}
	}
	return c
}

// setField sets field to the value that text represents.
func setField(field reflect.Value, text string) error {
	switch p := field.Addr().Interface().(type) {
	case interface{ Set(string) error }: // Bytes, List
		return p.Set(text)
	case *time.Duration:
		d, err := time.ParseDuration(text)
		*p = d
		return err
	case *int:
		n, err := strconv.Atoi(text)
		*p = n
		return err
	case *bool:
		b, err := strconv.ParseBool(text)
		*p = b
		return err
	case *string:
		*p = text
		return nil
	}
	return fmt.Errorf("fields of type %s have no defaults", field.Type())
}
