package fleet

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/internal/env/secrets"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
)

// loadIdentities reads PINWHEEL_SECRETS_KEY. The result is nil when it is empty. With a file that is not as it should
// be the process must not start: it would run without secrets, and no one would notice before a worker fails.
func loadIdentities(cfg config.Config, log zerolog.Logger) (*secrets.Identities, error) {
	if cfg.SecretsKey == "" {
		return nil, nil
	}
	ids, warning, err := secrets.Load(cfg.SecretsKey)
	if err != nil {
		return nil, err
	}
	if warning != "" {
		log.Warn().Msg(warning)
	}
	return ids, nil
}

// WithOwnKey returns cfg with a key for secrets, for a fleet on a developer's machine. If cfg has none, it is the file
// secrets.key in the directory of the data, which is made when it is missing.
func WithOwnKey(cfg config.Config) (config.Config, error) {
	if cfg.SecretsKey != "" {
		return cfg, nil
	}
	path := filepath.Join(cfg.Data, "secrets.key")
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(cfg.Data, 0o755); err != nil {
			return cfg, err
		}
		if _, err := secrets.Create(path); err != nil {
			return cfg, err
		}
	}
	cfg.SecretsKey = path
	return cfg, nil
}

// openSecretValues returns what this process can open, which is nothing yet.
func openSecretValues(cfg config.Config, log zerolog.Logger) (*secretValues, error) {
	ids, err := loadIdentities(cfg, log)
	if err != nil {
		return nil, err
	}
	return newSecretValues(ids, log), nil
}
