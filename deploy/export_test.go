package deploy

import "time"

// ForgetDeploysAtOnce has a route that no active version names be free at once.
func ForgetDeploysAtOnce(s *Store) { s.routes.deployTime = 0 }

// ForgetRemovedAfter sets how old the marker of a removed secret is before it goes, and returns how many names an owner
// may use.
func ForgetRemovedAfter(s *Secrets, age time.Duration) (names int) {
	s.markerAge = age
	return mostSecretNames
}
