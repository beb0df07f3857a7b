package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
)

// fileSuffix ends the name of a variable that names a file with the value of another one.
const fileSuffix = "_FILE"

// maxSecretFile is the size of the largest file with a value, in bytes.
const maxSecretFile = 64 << 10

// isSecret reports whether the values of a field may be secrets: all of them are text.
func isSecret(f reflect.StructField) bool { return f.Tag.Get("secret") == "true" }

// readFiles sets each field whose value stands in a file. It returns one error for each variable that is wrong.
func (c *Config) readFiles(getenv func(name string) string) error {
	var errs []error
	v := reflect.ValueOf(c).Elem()
	for i := range v.NumField() {
		field := v.Type().Field(i)
		name := variableName(field.Name)
		path := getenv(name + fileSuffix)
		switch {
		case !isSecret(field) || path == "":
		case getenv(name) != "":
			errs = append(errs, fmt.Errorf("%s and %s are both set: unset one of them", name, name+fileSuffix))
		default:
			value, err := secretIn(path)
			if err != nil {
				errs = append(errs, fmt.Errorf("%s is %q: %w", name+fileSuffix, path, err))
			}
			v.Field(i).SetString(value)
		}
	}
	return errors.Join(errs...)
}

// secretIn reads a value from a file. Editors and echo end a file with a line break, which is not part of the value.
func secretIn(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, maxSecretFile+1))
	if err != nil {
		return "", err
	}
	if len(text) > maxSecretFile {
		return "", fmt.Errorf("the file has more than %d bytes", maxSecretFile)
	}
	value := strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r")
	switch {
	case value == "":
		return "", errors.New("the file is empty")
	case strings.ContainsRune(value, 0):
		return "", errors.New("the file has a byte 0: it is no text")
	}
	return value, nil
}
