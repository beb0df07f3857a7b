// Package storage watches how full the streams of the fleet are. It reports when nothing more can be stored, keeps each
// owner to its share, and decides whether an owner's message is admitted.
//
// An owner's share is as much as is free. So a single owner gets half of a stream, and two owners that take all they
// can get a third each. There is always room for other owners.
package storage
