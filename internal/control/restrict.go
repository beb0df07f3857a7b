package control

import "github.com/pinwheel-run/pinwheel/internal/tail"

// Requests that are answered at the owner's door. Each restrict limits its request to the owner of the door.

func (r *AskWorkersFlow) restrict(owner string) error { return fixBoth(&r.Owner, &r.Worker, owner) }

func (r *ListWorkers) restrict(owner string) error { return fixOwner(&r.Owner, owner) }

func (r *FindWorkers) restrict(owner string) error { return fixOwner(&r.Owner, owner) }

func (r *WorkerName) restrict(owner string) error { return fixWorker(&r.Worker, owner) }

func (r *ScheduleName) restrict(owner string) error { return fixWorker(&r.Worker, owner) }

func (r *ListWaiting) restrict(owner string) error { return fixBoth(&r.Owner, &r.Worker, owner) }

func (r *CancelWaiting) restrict(owner string) error { return fixWorker(&r.Worker, owner) }

func (r *Tail) restrict(owner string) error { return fixBoth(&r.Owner, &r.Worker, owner) }

func (f *Filter) restrict(owner string) error {
	if err := tail.CheckRegexp(f.Match); err != nil {
		return wrongField("match", " %v", err)
	}
	return fixBoth(&f.Owner, &f.Worker, owner)
}

func (r *CountLetters) restrict(owner string) error { return fixBoth(&r.Owner, &r.Worker, owner) }

func (r *LetterID) restrict(owner string) error {
	r.only = owner
	return nil
}

// restrict checks first that the request says which letters: with the owner of the door it would choose all of them.
func (s *Selection) restrict(owner string) error {
	if err := tail.CheckRegexp(s.Match); err != nil { // before it is compiled
		return wrongField("match", " %v", err)
	}
	if _, err := s.parse(); err != nil {
		return err
	}
	if len(s.IDs) > maxDoorIDs {
		return refused("ids has %d entries: at the owner's door it has at most %d", len(s.IDs), maxDoorIDs)
	}
	s.only = owner
	if len(s.IDs) > 0 {
		return nil // each letter is compared with only
	}
	s.All = false // of its own
	return s.Filter.restrict(owner)
}

func (r *ReplayFilter) restrict(owner string) error {
	if len(r.IDs) > maxDoorIDs {
		return refused("ids has %d entries: at the owner's door it has at most %d", len(r.IDs), maxDoorIDs)
	}
	return fixBoth(&r.Owner, &r.Worker, owner)
}

func (r *JobName) restrict(owner string) error {
	r.only = owner
	return nil
}

func (r *ListJobs) restrict(owner string) error {
	r.only = owner
	return nil
}

func (r *ListSecrets) restrict(owner string) error {
	r.unopened = true
	return fixOwner(&r.Owner, owner)
}

func (r *SetSecret) restrict(owner string) error { return fixOwner(&r.Owner, owner) }

func (r *SecretName) restrict(owner string) error { return fixOwner(&r.Owner, owner) }

// AskSecretKeys asks for the public keys of the fleet, which are those of every owner.
type AskSecretKeys struct{}

func (*AskSecretKeys) restrict(string) error { return nil }

// AskStorage asks whether JetStream stores what is published, which is the same for every owner.
type AskStorage struct{}

func (*AskStorage) restrict(string) error { return nil }
